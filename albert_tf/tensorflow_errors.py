"""What an error of TensorFlow's graphs says to the user, read without TensorFlow."""

import re


def reason_of_refusal(message: str) -> str:
    """The sentence in an error of TensorFlow's graph: of a failed assertion, or of the operation."""
    text = message.partition("\n\t [[")[0]
    _, is_assertion, assertion = text.partition("assertion failed: [")
    if is_assertion:
        return assertion.partition("] [")[0].strip().removesuffix("]")
    text = re.sub(r"^ *\(\d+\) [A-Z_]+: ", "", text.splitlines()[-1])  # one of several errors
    return f"The model refused the input: {text}."
