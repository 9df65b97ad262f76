
// The form: a row is typed or pasted; its words, scores and label are computed here.
const READ = COLUMNS_READ; // by column: name, texts of a category's codes, code of other texts, whether it may be missing
function numberOf(text, column) {
  const read = READ[column];
  if (!read) return 0;
  const { name, texts, other, missing } = read, code = texts.indexOf(text), number = Number(text);
  if (code >= 0) return code;
  if (text === "" || text.toLowerCase() === "nan") {
    if (!missing) throw new RangeError(`${name} is missing, and may not be`);
    return NaN;
  }
  if (texts.length === 0 && !Number.isNaN(number)) return number;
  if (other === null) throw new RangeError(`${name}: ${text} is not a number`);
  return other;
}
function answered(text) {
  try {
    return text.trim() === "" ? "" : answer_of(text.trim());
  } catch (error) {
    return error.message;
  }
}
function answer_of(text) {
  const cells = text.split(/[,;\t]/.test(text) ? /\s*[,;\t]\s*/ : /\s+/).map((cell) => cell.replace(/^"(.*)"$/, "$1"));
  if (cells.length !== COLUMNS) return `${cells.length} of ${COLUMNS} values`;
  const x = words(cells.map(numberOf)), said = [];
  if (typeof predict === "function") {
    const several = Array.isArray(LABELS[0]);
    const best = several ? predict(x).map((index, target) => LABELS[target][index]) : LABELS[predict(x)];
    said.push(`class ${several ? best.join(", ") : best}`);
  }
  if (typeof probabilities === "function") said.push(`probabilities ${probabilities(x).map((p) => p.toPrecision(4)).join(", ")}`);
  if (typeof values === "function") said.push(`value ${values(x).map((v) => v.toPrecision(6)).join(", ")}`);
  return [...said, `scores ${scores(x).join(", ")}`, `words ${x.join(", ")}`].join("\n");
}
const field = document.getElementById("row"), answer = document.getElementById("answer");
field.addEventListener("input", () => { answer.textContent = answered(field.value); });
