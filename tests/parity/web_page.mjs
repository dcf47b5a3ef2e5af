// Opens the pages that web_ours.py wrote in a headless Chromium and compares their answers with our engine's.
// Arguments: folder, Python (for `python -m http.server`), Chromium.
import { execFileSync, spawn } from "node:child_process";
import { copyFileSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import puppeteer from "puppeteer-core";

const TOLERANCE = 1e-3;
const [root, python, chromium] = [resolve(process.argv[2]), process.argv[3], process.argv[4]];
const { pages } = JSON.parse(readFileSync(join(root, "expected.json"), "utf8"));
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

async function serve() {
  const process = spawn(python, ["-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", join(root, "onnx")], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  const line = await new Promise((ready) => process.stdout.once("data", (data) => ready(`${data}`)));
  return { process, address: `http://127.0.0.1:${line.match(/port (\d+)/)[1]}/` };
}

const names = Object.keys(pages);
execFileSync("npm", ["run", "--silent", "setup"], { cwd: join(root, "onnx", names[0], "1"), stdio: "ignore" });
for (const name of names.slice(1)) {
  for (const file of ["transformers.min.js", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm"]) {
    copyFileSync(join(root, "onnx", names[0], "1", file), join(root, "onnx", name, "1", file));
  }
}
const server = await serve();
const browser = await puppeteer.launch({ executablePath: chromium, args: ["--no-sandbox"] });
try {
  for (const name of names) {
    const page = await browser.newPage();
    const foreign = [];
    page.on("request", (request) => /^(blob|data):/.test(request.url()) || request.url().startsWith(server.address) || foreign.push(request.url()));
    page.on("pageerror", (error) => report(`page ${name}: ${error.message}`, Infinity));
    await page.goto(`${server.address}${name}/1/`);
    await page.waitForSelector("textarea");
    const [first] = pages[name];
    for (const [field, text] of Object.entries(first.row)) {
      await page.$eval(`textarea[name=${field}]`, (area, value) => (area.value = value), text);
    }
    await page.click("button");
    await page.waitForFunction(() => document.querySelector("#error").textContent || !document.querySelector("#result").hidden);
    const [shown, error] = await page.$$eval("#result, #error", (found) => found.sort((a) => (a.id === "error") || -1).map((one) => one.innerText));
    const word = first.answer.label ?? first.answer.answer ?? first.answer.pieces?.[0][0].replace("▁", "") ?? "cosine";
    report(`page ${name}, shown`, !error && shown.includes(word) ? 0 : Infinity);
    await page.screenshot({ path: join(root, `${name}.png`), fullPage: true });
    const rows = pages[name].map(({ row }) => row);
    const given = await page.evaluate(async (instances) => {
      const path = "v1/models/float32:predict";
      const { predictions } = await globalThis.answerInBrowser(path, { signature_name: "serving_default", instances });
      return predictions;
    }, rows);
    const wanted = pages[name].map(({ answer }) => answer.sentence_embedding ?? answer);
    report(`page ${name}`, difference(given, wanted));
    report(`page ${name}, foreign URLs`, foreign.length);
    await page.close();
  }
} finally {
  await browser.close();
  server.process.kill();
}
process.exit(failed ? 1 : 0);
