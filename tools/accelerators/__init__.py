"""Programs of this package for TPUs and GPUs, compiled on a machine that has neither."""

import os

# Read when JAX is imported, which Keras does too. Without those of TPUs, libtpu asks the cloud, in vain and for
# minutes, which TPU this is. Products on GPUs are cuBLASLt's with their epilogues, of which a GPU's autotuner chooses
# most; without a GPU it is not asked.
os.environ |= {"JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": "-1"}
os.environ |= {"TPU_SKIP_MDS_QUERY": "1", "TPU_WORKER_HOSTNAMES": "localhost", "TPU_ACCELERATOR_TYPE": "v5litepod-8"}
os.environ |= {"ALLOW_MULTIPLE_LIBTPU_LOAD": "1"}
os.environ["XLA_FLAGS"] = f"--xla_gpu_enable_triton_gemm=false {os.environ.get('XLA_FLAGS', '')}"
