// The list of conversations as a menu, on a narrow screen.

import { $ } from "./dom.js";
import { Layer } from "./layer.js";

const show = (isOpen) => {
  document.body.classList.toggle("menu", isOpen);
  $("menu").ariaExpanded = String(isOpen);
};
const layer = new Layer($("side"), { first: $("menu-close"), opener: $("menu"), show });

export const closeMenu = () => layer.isOpen && layer.toggle(false);

$("menu").addEventListener("click", () => layer.toggle(!layer.isOpen));
$("menu-close").addEventListener("click", closeMenu);
// Also the conversation that is open already: its link changes nothing else.
$("conversations").addEventListener("click", ({ target }) => target.closest("a") && closeMenu());
// The other parts are inert, so a click beside the menu is one on the page itself.
addEventListener("click", ({ target }) => target === document.body && closeMenu());
