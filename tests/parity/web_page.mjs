// Opens the pages that web_ours.py wrote in a headless Chromium and compares their answers with our engine's; and the
// page of `albert-tf serve`, for its picture of attention.
// Arguments: folder, Python (for the servers), Chromium.
import { execFileSync, spawn } from "node:child_process";
import { copyFileSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import puppeteer from "puppeteer-core";

const TOLERANCE = 1e-3;
const [root, python, chromium] = [resolve(process.argv[2]), process.argv[3], process.argv[4]];
const { pages, attention } = JSON.parse(readFileSync(join(root, "expected.json"), "utf8"));
if (!chromium) {
  console.log("page                     no Chromium was found, so it was not opened");
  process.exit(0);
}

let failed = false;

function report(name, difference) {
  const isClose = difference <= TOLERANCE;
  failed ||= !isClose;
  console.log(`${name.padEnd(24)} ${difference.toExponential(1)} ${isClose ? "" : "  differs"}`);
}

// The largest difference of two answers, whose strings must be equal.
function difference(given, wanted) {
  if (typeof wanted === "number") return Math.abs(given - wanted);
  if (typeof wanted !== "object") return given === wanted ? 0 : Infinity;
  if (JSON.stringify(Object.keys(given).sort()) !== JSON.stringify(Object.keys(wanted).sort())) return Infinity;
  return Math.max(0, ...Object.keys(wanted).map((key) => difference(given[key], wanted[key])));
}

async function serve(...command) {
  const process = spawn(python, ["-u", "-m", ...command], { stdio: ["ignore", "pipe", "ignore"] });
  const line = await new Promise((ready) => process.stdout.once("data", (data) => ready(`${data}`)));
  return { process, address: line.match(/http:[^ )]+/)[0] };
}

// Asks the page for an answer; returns what it shows.
async function submit(page, row) {
  for (const [field, text] of Object.entries(row)) {
    await page.$eval(`textarea[name=${field}]`, (area, value) => (area.value = value), text);
  }
  await page.click("button");
  await page.waitForFunction(() => document.querySelector("#error").textContent || !document.querySelector("#result").hidden);
  return page.evaluate(() => document.querySelector("#error").textContent || document.querySelector("#result").innerText);
}

async function comparePage(page, name) {
  const [{ row, answer }] = pages[name];
  const shown = await submit(page, row);
  const word = answer.label ?? (answer.labels && (answer.labels[0] ?? "No label")) ?? answer.answer ?? answer.pieces?.[0][0].replace("▁", "") ?? (answer.score === undefined ? "cosine" : "predicted number");
  report(`page ${name}, shown`, shown.includes(word) ? 0 : Infinity);
  await page.screenshot({ path: join(root, `${name}.png`), fullPage: true });
  const given = await page.evaluate(async (instances) => {
    const path = "v1/models/float32:predict";
    const { predictions } = await globalThis.answerInBrowser(path, { signature_name: "serving_default", instances });
    return predictions;
  }, pages[name].map(({ row }) => row));
  report(`page ${name}`, difference(given, pages[name].map(({ answer }) => single(answer))));
}

// As in the server's replies, an output that is the only one has no name.
const single = (answer) => (Object.keys(answer).length === 1 ? Object.values(answer)[0] : answer);

async function compareAttention(page) {
  report("blank text, refused", (await submit(page, { text: " " })).startsWith("Write something under") ? 0 : Infinity);
  await page.select("#task", "Attention");
  await submit(page, { text: attention.text });
  const [layer, head] = await page.$$("#result select");
  let largest = 0;
  for (const [index, heads] of attention.layers.entries()) {
    const mean = heads[0].map((row, from) => row.map((_, to) => heads.reduce((sum, one) => sum + one[from][to], 0) / heads.length));
    await layer.select(`${index + 1}`);
    for (const [name, values] of [...heads.map((values, one) => [`${one + 1}`, values]), ["mean of all", mean]]) {
      await head.select(name);
      const cells = await page.$$eval("#result rect title", (titles) => titles.map((title) => title.textContent));
      const given = cells.map((text) => Number(text.match(/([\d.]+) %$/)[1]) / 100);
      largest = Math.max(largest, difference(given, values.flat()));
    }
  }
  report("picture of attention", largest);
  await page.screenshot({ path: join(root, "attention.png"), fullPage: true });
}

const names = Object.keys(pages);
execFileSync("npm", ["run", "--silent", "setup"], { cwd: join(root, "onnx", names[0], "1"), stdio: "ignore" });
for (const name of names.slice(1)) {
  for (const file of ["transformers.min.js", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm"]) {
    copyFileSync(join(root, "onnx", names[0], "1", file), join(root, "onnx", name, "1", file));
  }
}
const files = await serve("http.server", "0", "--bind", "127.0.0.1", "--directory", join(root, "onnx"));
const models = await serve("albert_tf", "serve", join(root, "saved_models"), "--port", "0");
const browser = await puppeteer.launch({ executablePath: chromium, args: ["--no-sandbox"] });

async function open(address, compare) {
  const page = await browser.newPage();
  const foreign = [];
  page.on("request", (request) => {
    if (!request.url().startsWith("data:") && !request.url().startsWith(address)) foreign.push(request.url());
  });
  page.on("pageerror", (error) => report(error.message, Infinity));
  await page.goto(address);
  await page.waitForSelector("textarea");
  await compare(page);
  report(`    from elsewhere`, foreign.length);
  await page.close();
}

try {
  for (const name of names) await open(`${files.address}${name}/1/`, (page) => comparePage(page, name));
  await open(models.address, compareAttention);
} finally {
  await browser.close();
  files.process.kill();
  models.process.kill();
}
process.exit(failed ? 1 : 0);
