// Reads the folders that web_ours.py wrote with transformers.js, without a network, and compares its answers.
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { env, pipeline } from "@huggingface/transformers";

const TOLERANCE = 1e-3;
const root = resolve(process.argv[2]);
const expected = JSON.parse(readFileSync(join(root, "expected.json"), "utf8"));
env.allowRemoteModels = false;
env.localModelPath = join(root, "onnx");

let failed = false;

function report(name, difference) {
  const isClose = difference <= TOLERANCE;
  failed ||= !isClose;
  console.log(`${name.padEnd(24)} ${difference.toExponential(1)} ${isClose ? "" : "  differs"}`);
}

function largest(given, wanted) {
  const [first, second] = [given.flat(), wanted.flat()];
  if (first.length !== second.length) return Infinity;
  return Math.max(...first.map((value, index) => Math.abs(value - second[index])));
}

const load = (task, name) => pipeline(task, `${name}/1`, { dtype: "fp32" });

const classify = await load("text-classification", "classes");
const ids = [...expected.texts, ...expected.masked].map((text) => Array.from(classify.tokenizer(text).input_ids.data, Number));
report("ids", JSON.stringify(ids) === JSON.stringify(expected.ids) ? 0 : Infinity);
const labels = ["gloomy", "mixed", "pleasant"];
const classes = (await classify(expected.texts, { top_k: 3 })).map((row) =>
  labels.map((label) => row.find((entry) => entry.label === label).score),
);
report("text-classification", largest(classes, expected.probabilities));

const fill = await load("fill-mask", "masks");
const masks = await Promise.all(expected.masked.map((text) => fill(text, { top_k: 10 })));
report("fill-mask", largest(masks.map((row) => row.map((entry) => entry.score)), expected.mask_probabilities));

const ask = await load("question-answering", "answers");
const answer = await ask(expected.question, expected.context);
report("question-answering", answer.answer === expected.answer ? Math.abs(answer.score - expected.answer_score) : Infinity);

const embed = await load("feature-extraction", "vectors");
const vectors = await embed(expected.texts, { pooling: "mean", normalize: true });
report("feature-extraction", largest(vectors.tolist(), expected.vectors));
process.exit(failed ? 1 : 0);
