// The playground: a form for the signatures of each model, and its answers in words.
"use strict";

const byId = (id) => document.getElementById(id);
const has = (group, ...names) => names.every((name) => name in group);

// The first task whose condition a signature meets shows it. `fields`: input, caption, example.
const TASKS = [
  {
    title: "Fill the mask",
    fits: (inputs, outputs) => has(outputs, "pieces"),
    fields: [["text", "Text with [MASK]", "He put his hand in his [MASK]."]],
    show: showPieces,
  },
  {
    title: "Sentence order",
    fits: (inputs, outputs) => has(outputs, "in_order"),
    fields: [["text", "First segment", "He opened the door."], ["text_pair", "Second segment", "Then he went in."]],
    show: (row) => showNumber(percent(row.in_order), "probability that the segments are in this order"),
  },
  {
    title: "Question answering",
    fits: (inputs, outputs) => has(inputs, "question", "context") && has(outputs, "answer"),
    fields: [
      ["question", "Question", "Who wrote the book?"],
      ["context", "Context", "Jane Austen wrote the book in 1811."],
    ],
    show: showAnswer,
  },
  {
    title: "Tagging",
    fits: (inputs, outputs) => has(outputs, "entity_label"),
    fields: [["text", "Text", "Jane Austen lived in Bath."]],
    show: showEntities,
  },
  {
    title: "Multiple choice",
    fits: (inputs) => has(inputs, "choices"),
    fields: [["context", "Context", "She opened the umbrella because"], ["choices", "Choices, one a line", "it rained.\nit was dark."]],
    show: (row, inputs) => [bars(inputs.choices.map((choice, index) => [choice, row.probabilities[index]]))],
  },
  {
    title: "Similarity",
    fits: (inputs, outputs) => has(outputs, "sentence_embedding"),
    fields: [["text", "First text", "A man is eating."], ["other", "Second text", "Someone eats."]],
    show: (row, inputs, rows) => showNumber(
      cosine(...rows.map((one) => one.sentence_embedding)).toFixed(4), "cosine of the two embeddings",
    ),
  },
  {
    title: "Classification",
    fits: (inputs, outputs) => has(outputs, "probabilities"),
    fields: [["text", "Text", "A garden in the sun."], ["text_pair", "Second text", "Flowers bloom."]],
    show: (row, inputs, rows, labels) => [
      element("p", "big", row.label ?? (row.labels.filter((label) => label).join(", ") || "No label")),
      bars(row.probabilities.map((value, index) => [labels[index] ?? `label ${index}`, value]).sort((a, b) => b[1] - a[1])),
    ],
  },
  {
    title: "Number",
    fits: (inputs, outputs) => has(inputs, "text") && has(outputs, "score"),
    fields: [["text", "Text", "A garden in the sun."], ["text_pair", "Second text", "Flowers bloom."]],
    show: (row) => showNumber(row.score.toFixed(4), "predicted number"),
  },
  {
    title: "Attention",
    fits: (inputs, outputs) => has(outputs, "tokens", "attention"),
    fields: [
      ["text", "Text", "The old man put his hat on because it was cold."],
      ["text_pair", "Second text", "Then he went out."],
      ["question", "Question", "Who wrote the book?"],
      ["context", "Context", "Jane Austen wrote the book in 1811."],
    ],
    show: showAttention,
  },
];

let models = [];

// === Server ===

async function call(path, body) {
  const headers = { "content-type": "application/json" };
  if (byId("key").value) headers["x-api-key"] = byId("key").value;
  const options = body ? { method: "POST", body: JSON.stringify(body), headers } : { headers };
  let reply;
  try {
    reply = await fetch(path, options);
  } catch {
    throw new Error("The server cannot be reached.");
  }
  const answer = await reply.json().catch(() => ({ error: `The server answered ${reply.status} without JSON.` }));
  if (reply.status === 401) Object.assign(byId("access"), { hidden: false, open: true });
  if (!reply.ok) throw new Error(answer.error);
  return answer;
}

async function loadModels() {
  byId("list-error").textContent = "";
  try {
    models = (await call("v1/models")).models;
  } catch (error) {
    const asks = !byId("access").hidden && !byId("key").value;
    byId("about").textContent = asks ? "This server asks for an API key." : "";
    byId("list-error").textContent = asks ? "" : error.message;
    return;
  }
  byId("access").open = false;
  for (const id of ["pickers", "ask"]) byId(id).hidden = false;
  byId("model").replaceChildren(...models.map(({ name }) => new Option(name)));
  chooseModel();
}

async function submit(event) {
  event.preventDefault();
  const { model, task, signature } = chosen();
  const button = byId("form").querySelector("button");
  if (button.ariaBusy === "true") return;
  const inputs = {};
  for (const field of byId("fields").querySelectorAll("textarea")) {
    if (!field.value.trim()) {
      byId("result").hidden = true;
      byId("error").textContent = `Write something under “${field.parentNode.firstChild.textContent}”.`;
      field.focus();
      return;
    }
    inputs[field.name] = field.name === "choices" ? field.value.split("\n").filter((line) => line.trim()) : field.value;
  }
  button.ariaBusy = "true"; // a disabled button would lose the focus
  byId("error").textContent = "";
  try {
    const { other, ...own } = inputs;
    const instances = other === undefined ? [own] : [own, { text: other }];
    const path = `v1/models/${model.name}:predict`;
    const { outputs } = model.signatures[signature];
    const rows = (await call(path, { signature_name: signature, instances })).predictions.map((row) => named(row, outputs));
    const labels = "labels" in model.signatures && task.title === "Classification"
      ? (await call(path, { signature_name: "labels", inputs: {} })).outputs : [];
    byId("result").replaceChildren(element("h2", "", task.title), ...task.show(rows[0], inputs, rows, labels));
    byId("result").hidden = false;
  } catch (error) {
    byId("result").hidden = true;
    byId("error").textContent = error.message;
  }
  button.ariaBusy = "false";
}

// A single output has no name in the reply.
function named(row, outputs) {
  const names = Object.keys(outputs);
  return names.length === 1 ? { [names[0]]: row } : row;
}

// === Form ===

function tasksOf(model) {
  return Object.entries(model.signatures)
    .filter(([, { inputs }]) => Object.keys(inputs).length && Object.values(inputs).every(({ dtype }) => dtype === "string"))
    .map(([signature, { inputs, outputs }]) => ({ signature, task: TASKS.find((task) => task.fits(inputs, outputs)) }))
    .filter(({ task }) => task)
    .sort((a, b) => (b.signature === "serving_default") - (a.signature === "serving_default"));
}

function chosen() {
  const model = models[byId("model").selectedIndex];
  return { model, ...tasksOf(model)[byId("task").selectedIndex] };
}

function chooseModel() {
  const model = models[byId("model").selectedIndex];
  const engine = [model.engine, model.precision].filter(Boolean).join(", ");
  byId("about").textContent = `${model.version ? `Version ${model.version}, run` : "Run"} by ${engine}.`;
  byId("task").replaceChildren(...tasksOf(model).map(({ task }) => new Option(task.title)));
  chooseTask();
}

function chooseTask() {
  byId("result").hidden = true;
  byId("error").textContent = "";
  const { model, task, signature } = chosen();
  if (!task) {
    byId("fields").replaceChildren(element("p", "muted", "No form for this model; use its REST interface."));
    byId("form").querySelector("button").disabled = true;
    return;
  }
  byId("form").querySelector("button").disabled = false;
  const inputs = model.signatures[signature].inputs;
  const fields = task.fields.filter(([name]) => name in inputs || name === "other").map(([name, caption, example]) => {
    const area = Object.assign(document.createElement("textarea"), { name, value: example, required: true });
    area.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) byId("form").requestSubmit();
    });
    const label = element("label", "", caption);
    label.append(area);
    return label;
  });
  byId("fields").replaceChildren(...fields);
}

// === Answers ===

function showPieces(row) {
  return row.pieces.flatMap((pieces, index) => [
    ...(row.pieces.length > 1 ? [element("h2", "", `Mask ${index + 1}`)] : []),
    bars(pieces.map((piece, i) => [piece.replace(/^▁/, "").replace(/^##/, "…"), row.probabilities[index][i]])),
  ]);
}

function showAnswer(row, inputs) {
  const confidence = `score ${row.score.toFixed(4)}`;
  if (!row.answer) return [element("p", "big", "No answer"), element("p", "muted", confidence)];
  const spans = row.start < 0 ? [] : [{ start: row.start, end: row.end, hue: 50 }];
  return [element("p", "big", row.answer), marked(inputs.context, spans), element("p", "muted", confidence)];
}

function showEntities(row, inputs) {
  const spans = row.entity_label.map((label, i) => ({ label, start: row.entity_start[i], end: row.entity_end[i], hue: hue(label) }))
    .filter(({ label }) => label);
  if (!spans.length) return [element("p", "muted", "Nothing was found in this text.")];
  const found = spans.map(({ label }, i) => [`${row.entity_text[i]} (${label})`, row.entity_score[i]]);
  return [marked(inputs.text, spans), bars(found)];
}

function showAttention({ tokens, attention }) {
  const words = tokens.filter((token) => token).map((token) => token.replace(/^▁/, "") || token);
  const layer = select("Layer", attention.map((_, index) => `${index + 1}`));
  const head = select("Head", [...attention[0].map((_, index) => `${index + 1}`), "mean of all"]);
  const picture = Object.assign(element("div", "picture"), { tabIndex: 0 }); // scrolls with arrow keys
  const draw = () => {
    const heads = attention[layer.selectedIndex];
    const chosen = head.selectedIndex < heads.length ? [heads[head.selectedIndex]] : heads;
    const values = words.map((_, from) => words.map((_, to) => chosen.reduce((sum, one) => sum + one[from][to], 0) / chosen.length));
    const name = `Attention in layer ${layer.value}, head ${head.value}`;
    picture.replaceChildren(heatMap(words, values, name));
  };
  for (const choice of [layer, head]) choice.addEventListener("change", draw);
  draw();
  const pickers = element("div", "pickers");
  pickers.append(layer.parentNode, head.parentNode);
  const caption = "A row shows how much its token attends to that of each column; the strongest colour is the picture's "
    + "highest value. Of a long text, the first tokens are shown.";
  return [pickers, picture, element("p", "muted", caption)];
}

function heatMap(words, values, name) {
  const width = (word) => Array.from(word).reduce((sum, character) => sum + (character < "\u1100" ? 8 : 13), 0);
  const [cell, margin] = [18, 12 + Math.max(...words.map(width))];
  const size = margin + cell * words.length;
  const picture = drawn("svg", { width: size, height: size, role: "img", "aria-label": name });
  const highest = Math.max(...values.flat());
  words.forEach((word, from) => {
    const middle = margin + cell * (from + 0.5) + 4;
    picture.append(
      drawn("text", { x: margin - 6, y: middle, "text-anchor": "end" }, word),
      drawn("text", { transform: `translate(${middle} ${margin - 6}) rotate(-90)` }, word),
    );
    values[from].forEach((value, to) => {
      const [x, y] = [margin + cell * to, margin + cell * from];
      const square = drawn("rect", { x, y, width: cell - 1, height: cell - 1, "fill-opacity": (value / highest).toFixed(3) });
      square.append(drawn("title", {}, `${word} → ${words[to]}: ${percent(value)}`));
      picture.append(square);
    });
  });
  return picture;
}

function drawn(tag, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function select(caption, options) {
  const made = document.createElement("select");
  made.append(...options.map((option) => new Option(option)));
  const label = element("label", "", caption);
  label.append(made);
  return made;
}

function showNumber(value, caption) {
  return [element("p", "big", value), element("p", "muted", caption)];
}

// Spans count Unicode characters, of which JavaScript's strings may need two units each.
function marked(text, spans) {
  const characters = Array.from(text);
  const passage = element("p", "passage");
  let position = 0;
  for (const { start, end, label, hue } of [...spans].sort((a, b) => a.start - b.start)) {
    const mark = element("mark", "", characters.slice(start, end).join(""));
    mark.style.setProperty("--hue", hue);
    if (label) mark.append(element("b", "", label));
    passage.append(characters.slice(position, start).join(""), mark);
    position = end;
  }
  passage.append(characters.slice(position).join(""));
  return passage;
}

function bars(rows) {
  const list = element("ul", "rows");
  for (const [name, value] of rows) {
    const item = element("li", "");
    item.style.setProperty("--share", `${Math.max(0, Math.min(1, value)) * 100}%`);
    item.append(element("span", "", name), element("span", "value", percent(value)));
    list.append(item);
  }
  return list;
}

function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

const percent = (value) => `${(value * 100).toFixed(value < 0.01 ? 3 : 1)} %`;
const hue = (label) => Array.from(label).reduce((sum, character) => (sum * 31 + character.codePointAt(0)) % 360, 7);
const dot = (a, b) => a.reduce((sum, value, index) => sum + value * b[index], 0);
const cosine = (a, b) => dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b)) || 0;

byId("model").addEventListener("change", chooseModel);
byId("task").addEventListener("change", chooseTask);
byId("key").addEventListener("change", loadModels);
byId("key-form").addEventListener("submit", (event) => event.preventDefault()); // Enter is a change
byId("form").addEventListener("submit", submit);
loadModels();
