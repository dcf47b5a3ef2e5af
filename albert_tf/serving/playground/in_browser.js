// Answers the playground's requests in the browser, with transformers.js and the folder that this page is in.
"use strict";

{
  // Files that `npm run setup` puts beside this page. Addresses of a CDN would work too.
  const LIBRARY = new URL("transformers.min.js", document.baseURI).href;
  const RUNTIME = new URL("ort-wasm-simd-threaded", document.baseURI).href;
  const PRECISIONS = { float32: ["fp32", "onnx/model.onnx"], int8: ["q8", "onnx/model_quantized.onnx"] };
  const TOP = 10;
  const OUTPUTS = { regression: ["score"], multi_label: ["labels", "probabilities"] };

  const task = document.currentScript.dataset.pipeline;
  const loaded = {};
  let manifest;

  // Inputs and outputs, as the server's signatures of the task have them, and the answer to a row.
  const SERVED = {
    "text-classification": {
      inputs: () => ["text", ...(manifest.takes_pairs ? ["text_pair"] : [])],
      outputs: () => OUTPUTS[manifest.problem] ?? ["label", "score", "probabilities"],
      answer: classify,
    },
    "fill-mask": { inputs: () => ["text"], outputs: () => ["pieces", "probabilities"], answer: fillMasks },
    "question-answering": {
      inputs: () => ["question", "context"],
      outputs: () => ["answer", "start", "end", "score", "null_odds"],
      answer: findAnswer,
    },
    "feature-extraction": { inputs: () => ["text"], outputs: () => ["sentence_embedding"], answer: embed },
  }[task];

  globalThis.answerInBrowser = async (path, body) => {
    manifest ??= await readManifest();
    const precision = path.match(/^v1\/models\/(.+):predict$/)?.[1];
    if (!precision) return { models: listModels() };
    if (body.signature_name === "labels") return { outputs: manifest.labels };
    loaded[precision] ??= load(PRECISIONS[precision][0]);
    const model = await loaded[precision].catch((error) => {
      delete loaded[precision];
      throw error;
    });
    const predictions = [];
    for (const row of body.instances) predictions.push(await SERVED.answer(model, row));
    return { predictions };
  };

  async function readManifest() {
    const reply = await fetch("model.json").catch(() => null);
    if (!reply?.ok) throw new Error("model.json cannot be read; serve this folder over HTTP: python -m http.server");
    return reply.json();
  }

  function listModels() {
    const specs = (names) => Object.fromEntries(names.map((name) => [name, { dtype: "string" }]));
    const signatures = { serving_default: { inputs: specs(SERVED.inputs()), outputs: specs(SERVED.outputs()) } };
    if (manifest.labels.length) signatures.labels = { inputs: {}, outputs: specs(["labels"]) };
    return Object.entries(PRECISIONS)
      .filter(([, [, file]]) => file in manifest.files)
      .map(([name]) => ({ name, engine: "transformers.js in this browser", signatures }));
  }

  async function load(dtype) {
    const library = await import(LIBRARY).catch(() => null);
    if (!library) throw new Error("transformers.min.js is not beside this page; run there: npm run setup");
    const { env, pipeline } = library;
    Object.assign(env, { allowLocalModels: true, allowRemoteModels: false, useBrowserCache: false, useWasmCache: false });
    env.backends.onnx.wasm.wasmPaths = { mjs: `${RUNTIME}.mjs`, wasm: `${RUNTIME}.wasm` };
    return pipeline(task, ".", { dtype, device: "wasm" });
  }

  // === Answers ===

  function tokenize(model, text, text_pair = null) {
    return model.tokenizer(text, { text_pair, truncation: true, max_length: manifest.max_length });
  }

  async function classify(model, { text, text_pair }) {
    const { logits } = await model.model(tokenize(model, text, text_pair));
    const values = logits.tolist()[0];
    if (manifest.problem === "regression") return values[0];
    if (manifest.problem === "multi_label") {
      const probabilities = values.map((value) => 1 / (1 + Math.exp(-value)));
      const { threshold } = manifest;
      const above = (label) => (typeof threshold === "number" ? threshold : threshold[label] ?? 0.5);
      return { labels: manifest.labels.filter((label, index) => probabilities[index] > above(label)), probabilities };
    }
    const probabilities = softmax(values);
    const score = Math.max(...probabilities);
    return { label: manifest.labels[probabilities.indexOf(score)], score, probabilities };
  }

  async function fillMasks(model, { text }) {
    const inputs = tokenize(model, text);
    const masks = idsOf(inputs).flatMap((id, index) => (id === model.tokenizer.mask_token_id ? [index] : []));
    if (!masks.length) throw new Error(`The first ${manifest.max_length} tokens must contain [MASK].`);
    const { logits } = await model.model(inputs);
    const pieces = new Map(Array.from(model.tokenizer.get_vocab(), ([piece, id]) => [id, piece]));
    const rows = masks.map((mask) => {
      const probabilities = softmax(Array.from(logits[0][mask].data));
      return Array.from(probabilities.keys()).sort((a, b) => probabilities[b] - probabilities[a]).slice(0, TOP)
        .map((id) => [pieces.get(id), probabilities[id]]);
    });
    const column = (index) => rows.map((row) => row.map((entry) => entry[index]));
    return { pieces: column(0), probabilities: column(1) };
  }

  async function findAnswer(model, { question, context }) {
    const inputs = tokenize(model, question, context);
    const [ids, types] = [idsOf(inputs), idsOf(inputs, "token_type_ids")];
    const positions = types.flatMap((type, index) => (type === 1 && index < types.length - 1 ? [index] : []));
    const outputs = await model.model(inputs);
    const [starts, ends] = [outputs.start_logits, outputs.end_logits].map((logits) => logits.tolist()[0]);
    let best = { score: -Infinity };
    for (const first of positions) {
      for (const last of positions.filter((position) => position >= first && position < first + (manifest.max_answer_length ?? 30))) {
        if (starts[first] + ends[last] > best.score) best = { score: starts[first] + ends[last], first, last };
      }
    }
    const null_odds = starts[0] + ends[0] - best.score;
    const none = { answer: "", start: -1, end: -1, score: 0, null_odds };
    if (!positions.length) return none;
    const total = (logits) => logSum([0, ...positions].map((position) => logits[position]));
    const score = Math.exp(best.score - total(starts) - total(ends));
    if (null_odds > (manifest.no_answer_threshold ?? Infinity)) return { ...none, score };
    const [before, answer] = [ids.slice(positions[0], best.first), ids.slice(best.first, best.last + 1)].map((pieces) =>
      pieces.length ? model.tokenizer.decode(pieces) : "",
    );
    return { ...locate(context, answer, before.replaceAll(model.tokenizer.unk_token, "")), score, null_odds };
  }

  // Decoded pieces have lost case, accents and white space, so those of the text are left out of the search.
  function locate(context, answer, before) {
    const [letters, wanted] = [lettersOf(context), lettersOf(answer)];
    const text = (some) => some.map(([letter]) => letter).join("");
    const index = text(letters).indexOf(text(wanted), text(lettersOf(before)).length);
    if (index < 0 || !wanted.length) return { answer, start: -1, end: -1 };
    const units = letters.flatMap(([letter, character]) => Array(letter.length).fill(character));
    const [start, end] = [units[index], units[index + text(wanted).length - 1] + 1];
    return { answer: Array.from(context).slice(start, end).join(""), start, end };
  }

  function lettersOf(text) {
    const fold = (character) => character.normalize("NFKD").replace(/[\p{M}\s]/gu, "").toLowerCase();
    return Array.from(text, (character, index) => [fold(character), index]);
  }

  async function embed(model, { text }) {
    return (await model(text, { pooling: "mean", normalize: manifest.normalize })).tolist()[0];
  }

  function idsOf(inputs, name = "input_ids") {
    return Array.from(inputs[name].data, Number);
  }

  function logSum(logits) {
    const highest = logits.reduce((most, value) => Math.max(most, value));
    return highest + Math.log(logits.reduce((sum, value) => sum + Math.exp(value - highest), 0));
  }

  function softmax(logits) {
    const total = logSum(logits);
    return logits.map((value) => Math.exp(value - total));
  }
}
