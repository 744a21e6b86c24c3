// Elements of Markdown, as the server has read it. Texts become texts, so no markup of a model has an effect.

import { button, element } from "../dom.js";

const SIMPLE = {
  paragraph: "p", quote: "blockquote", bullet_list: "ul", item: "li", row: "tr",
  emphasis: "em", strong: "strong", strikethrough: "s", code: "code", break: "br", rule: "hr",
};
const SCHEMES = ["https:", "http:", "mailto:"];

const schemeOf = (address) => {
  try {
    return new URL(address).protocol;
  } catch {
    return null;
  }
};

/** Returns a link to another site, or the text alone if the address is none. */
const link = (address, className = "") => {
  if (!SCHEMES.includes(schemeOf(address))) return element("span");
  const made = element("a", className);
  made.href = address;
  made.title = address;
  made.target = "_blank";
  made.rel = "noopener noreferrer nofollow";
  return made;
};

const cell = (tag, alignment) => element(tag, `align-${alignment}`);

const WITH_VALUE = {
  // The page has headings of its own above those of an answer.
  heading: (level) => element(`h${Math.min(level + 2, 6)}`),
  code_block: (language) => Object.assign(element("pre"), { tabIndex: 0, ariaLabel: `Code ${language}`.trim() }),
  numbered_list: (first) => Object.assign(element("ol"), { start: first }),
  header_cell: (alignment) => cell("th", alignment),
  cell: (alignment) => cell("td", alignment),
  link: (address) => link(address),
  // A picture is not loaded: its server would learn who reads the answer.
  picture: (address) => link(address, "picture"),
};

const make = (tag) => {
  if (typeof tag === "string") return tag === "table" ? element("table") : element(SIMPLE[tag] ?? "span");
  const [[name, value]] = Object.entries(tag);
  return WITH_VALUE[name]?.(value) ?? element("span");
};

/** Builds a node. */
export const build = (node) => {
  if (typeof node === "string") return document.createTextNode(node);
  const made = make(node.tag);
  made.append(...(node.children ?? []).map(build));
  if (node.tag.code_block !== undefined) return codeBlock(made, node.tag.code_block);
  return node.tag === "table" ? scrolling(made) : made;
};

/** Wide tables scroll by themselves. */
const scrolling = (table) => {
  const frame = element("div", "scrolling");
  frame.tabIndex = 0;
  frame.append(table);
  return frame;
};

const codeBlock = (code, language) => {
  const frame = element("div", "code");
  const bar = element("div", "code-bar");
  bar.append(element("span", "", language));
  // A page that came without encryption has no clipboard.
  if (navigator.clipboard) bar.append(copyButton(code));
  frame.append(bar, code);
  return frame;
};

const copyButton = (code) => {
  const copy = button("Copy", async () => {
    const copied = navigator.clipboard.writeText(code.textContent);
    copy.textContent = await copied.then(() => "Copied", () => "Not copied");
  });
  return copy;
};
