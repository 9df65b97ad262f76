
// The form: a row is typed or pasted; its words, scores and label are computed here.
const COLUMN_TEXTS = CATEGORIES; // by column, the texts of a category's codes
function numberOf(text, column) {
  const code = (COLUMN_TEXTS[column] || []).indexOf(text);
  return text === "" ? NaN : code < 0 ? Number(text) : code;
}
function answered(text) {
  const cells = text.trim().split(/\s*[,;\t]\s*|\s+/);
  if (text.trim() === "") return "";
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
