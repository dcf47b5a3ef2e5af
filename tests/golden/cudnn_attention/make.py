"""Writes `calls.json`: the calls of cuDNN's attention, as JAX makes them. To be run with JAX, on any machine."""

import json
import pathlib
import re

import jax
import jax.numpy as jnp
from jax._src.cudnn import fused_attention_stablehlo as cudnn

B, N, L, H = 2, 3, 8, 16
DTYPES = ("bfloat16", "float16")
ZEROS = (0, False, "0", [], {}, "PRIMITIVE_TYPE_INVALID")


def main() -> None:
    """All four kinds of calls, forward and backward."""
    # JAX asks the processor at hand, which here is not the one that the program is for.
    cudnn.check_cudnn_version = lambda: 91000
    cudnn.check_compute_capability = lambda capability: True
    cudnn.is_cuda_compute_capability_equal = lambda capability: False
    cudnn.should_export_dbias = lambda *shapes: False  # nobody needs the gradient of a mask
    found = {f"{dtype} {kind}": calls(dtype, kind == "masked") for dtype in DTYPES for kind in ("full", "masked")}
    file = pathlib.Path(__file__).with_name("calls.json")
    lines = [f'"{kind}": [\n' + ",\n".join(map(json.dumps, made)) + "\n]" for kind, made in found.items()]
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def calls(dtype: str, has_mask: bool) -> list[dict]:
    """What a program of the gradient calls, in order."""
    tensor = jnp.zeros((B, N, L, H), dtype)
    mask = jnp.ones((B, 1, L, L), bool) if has_mask else None

    def attend(query, key, value):
        return cudnn.dot_product_attention(query, key, value, mask=mask, scale=1.0, qkv_layout="BNTH")

    gradient = jax.jit(lambda query, key, value: jax.vjp(attend, query, key, value)[1](query))
    program = gradient.trace(tensor, tensor, tensor).lower(lowering_platforms=("cuda",)).as_text()
    pattern = r"custom_call @(__cudnn\S+?)\(.*backend_config = \"(.*?)\", .* : \((.*)\) -> \((.*)\)"
    return [
        {
            "target": target,
            "operands": types(operands),
            "results": types(results),
            "config": without_zeros(json.loads(config.replace(r"\22", '"'))),
        }
        for target, config, operands, results in re.findall(pattern, program)
    ]


def types(text: str) -> list[str]:
    """`tensor<2x3xbf16>` as `bf16[2,3]`."""
    parts = [part.split("x") for part in re.findall(r"tensor<(.*?)>", text)]
    return [f"{dtype.replace('ui', 'u')}[{','.join(sizes)}]" for *sizes, dtype in parts]


def without_zeros(value):
    """JSON of a protocol buffer without the fields whose value is that of absent ones."""
    if not isinstance(value, dict):
        return value
    fields = {name: field if name == "tuning_knobs" else without_zeros(field) for name, field in value.items()}
    return {name: field for name, field in fields.items() if field not in ZEROS}


if __name__ == "__main__":
    main()
