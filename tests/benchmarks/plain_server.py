"""A plain server of a classifier with FastAPI, transformers and torch, one request at a time, to compare with.

python tests/benchmarks/plain_server.py runs/task --port 8504
"""

import argparse

import torch
import uvicorn
from fastapi import FastAPI
from transformers import AlbertForSequenceClassification, AutoTokenizer


def make_app(folder: str) -> FastAPI:
    """The application."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AlbertForSequenceClassification.from_pretrained(folder).eval()
    app = FastAPI()

    @app.post("/predict")
    def predict(body: dict) -> dict:
        inputs = tokenizer(body["instances"], truncation=True, max_length=512, padding=True, return_tensors="pt")
        with torch.inference_mode():
            return {"predictions": model(**inputs).logits.softmax(-1).tolist()}

    return app


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--port", type=int, default=8504)
    arguments = parser.parse_args()
    uvicorn.run(make_app(arguments.folder), port=arguments.port, log_level="warning")
