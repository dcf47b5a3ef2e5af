"""The settings of a server."""

import dataclasses

from albert_tf.data.finetuning.encoded import MAX_TOKENS


@dataclasses.dataclass(frozen=True)
class ServerOptions:
    """How models are served; sizes are bytes, times seconds.

    Attributes:
        host, port: address of the server; port 0 takes a free one.
        engine, precision: see `load_engine`.
        max_batch_size: rows of a batch.
        max_batch_tokens: tokens of a batch of several rows, with padding; for texts, four bytes count as one.
        max_queue: rows that may wait; also the most rows of a request.
        timeout: after which a request fails.
        max_answer: size of the arrays of an answer; as JSON they are up to four times as large.
        max_body: size of a request.
        read_timeout: in which the body of a request must arrive.
        api_key: what clients must send. None: nothing.
        allowed_hosts: names besides localhost for which requests are answered. On an address that other machines reach,
            none means all.
        drain: how long running requests may take at shutdown.
    """

    host: str = "127.0.0.1"
    port: int = 8501
    engine: str = "auto"
    precision: str = "auto"
    max_batch_size: int = 32
    max_batch_tokens: int = MAX_TOKENS
    max_queue: int = 1024
    timeout: float = 30.0
    max_answer: int = 64 << 20
    max_body: int = 4 << 20
    read_timeout: float = 10.0
    api_key: str | None = None
    allowed_hosts: tuple[str, ...] = ()
    drain: float = 30.0
