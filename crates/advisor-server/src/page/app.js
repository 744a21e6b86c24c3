// The chat page. It shows what the server sends as text, never as markup.

const $ = (id) => document.getElementById(id);
const messages = $("messages");
let conversation = null;
/** The conversation whose turn runs, if it has a name yet, and the way to give up its first request. */
let running = null;
let asking = new AbortController();
/** Sends the edited text, while a message is edited. */
let editing = null;

/** Returns a copy of a template's element. */
const copy = (id) => $(id).content.firstElementChild.cloneNode(true);

const api = async (path, options = {}) => {
  const response = await fetch(path, options);
  if (!response.ok) {
    const body = await response.json().catch(() => ({}));
    throw new Error(body.error?.message ?? `the server answered ${response.status}`);
  }
  return response;
};

/** Keeps the end in view, unless the reader has scrolled up. */
const following = (change) => {
  const atEnd = messages.scrollHeight - messages.scrollTop - messages.clientHeight < 80;
  change();
  if (atEnd) messages.scrollTop = messages.scrollHeight;
};

class Answer {
  constructor() {
    this.article = copy("message");
    this.article.className = "assistant";
    this.article.querySelector("h2").textContent = "Assistant";
    this.body = this.article.querySelector(".body");
    this.tools = new Map();
    following(() => messages.append(this.article));
  }

  text(piece) {
    following(() => {
      if (!this.body.lastElementChild?.classList.contains("text")) {
        const text = document.createElement("div");
        text.className = "text";
        this.body.append(text);
      }
      this.body.lastElementChild.append(piece);
    });
  }

  start(id, tool, args) {
    following(() => {
      const details = copy("tool");
      details.querySelector("summary").textContent = `Calling tool: ${tool}…`;
      details.querySelector(".args").textContent = JSON.stringify(args, null, 2);
      details.dataset.tool = tool;
      this.tools.set(id, details);
      this.body.append(details);
    });
  }

  fail(id) {
    this.tools.get(id)?.classList.add("failed");
  }

  end(id, result) {
    const details = this.tools.get(id);
    if (!details) return;
    const failed = details.classList.contains("failed");
    details.querySelector("summary").textContent = failed ? `Tool failed: ${details.dataset.tool}` : `Used tool: ${details.dataset.tool}`;
    details.querySelector(".result").textContent = typeof result === "string" ? result : JSON.stringify(result, null, 2);
    details.dataset.ended = "";
  }

  error(text) {
    following(() => {
      const line = document.createElement("p");
      line.className = "error";
      line.textContent = text;
      this.body.append(line);
    });
  }

  clear() {
    this.body.replaceChildren();
    this.tools.clear();
  }

  take(event) {
    switch (event.type) {
      case "content": return this.text(event.content);
      case "tool_call_start": return this.start(event.id, event.tool, event.args);
      case "tool_call_end": return this.end(event.id, event.result);
      case "restart": return this.clear();
      case "error": return event.id && this.tools.has(event.id) ? this.fail(event.id) : this.error(event.error);
    }
  }
}

const showUser = (text, turn) => {
  const article = copy("message");
  article.dataset.text = text;
  if (turn) offer(article, turn);
  article.className = "user";
  article.querySelector("h2").textContent = "You";
  article.querySelector(".body").textContent = text;
  article.querySelector(".body").classList.add("text");
  following(() => messages.append(article));
};

/** Offers to edit a message of the user, or to have it answered again. */
const offer = (article, turn) => {
  const button = (label, run) => {
    const element = document.createElement("button");
    element.type = "button";
    element.textContent = label;
    element.addEventListener("click", () => $("stop").hidden && run());
    return element;
  };
  const actions = document.createElement("div");
  actions.className = "actions";
  const replace = (text) => {
    while (messages.lastElementChild !== article) messages.lastElementChild.remove();
    article.remove();
    ask(text, turn);
  };
  actions.append(
    button("Edit", () => {
      editing = replace;
      $("text").value = article.dataset.text;
      $("text").focus();
    }),
    button("Answer again", () => replace(article.dataset.text)),
  );
  article.append(actions);
};

/** Reads events until the end of the turn. Returns whether it was reached. */
const read = async (response, turn, answer) => {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return false;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const lines = event.split("\n");
      const field = (name) => lines.find((line) => line.startsWith(name + ": "))?.slice(name.length + 2);
      turn.last = field("id") ?? turn.last;
      const data = field("data");
      if (data === "[DONE]") return true;
      if (data) answer.take(JSON.parse(data));
    }
  }
};

const wait = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

/** Reads a turn, and joins it again after a broken connection. */
const follow = async (response, answer) => {
  const turn = { id: response.headers.get("x-turn-id"), last: null };
  running = conversation;
  busy(true);
  try {
    for (let tries = 0; ; tries++) {
      try {
        if (!response || response.status === 204 || (await read(response, turn, answer))) return;
      } catch {
        if (tries > 20) return answer.error("the connection is broken");
      }
      await wait(Math.min(250 * 2 ** tries, 4000));
      const headers = { "x-turn-id": turn.id, ...(turn.last && { "last-event-id": turn.last }) };
      response = await api(`/api/conversations/${encodeURIComponent(running)}/stream`, { headers }).catch(() => null);
      if (!response) response = { body: null };
    }
  } finally {
    running = null;
    busy(false);
  }
};

const busy = (isBusy) => {
  $("send").hidden = isBusy;
  $("stop").hidden = !isBusy;
  messages.ariaBusy = String(isBusy);
};

const ask = async (text, replaces) => {
  showUser(text);
  const asked = messages.lastElementChild;
  const answer = new Answer();
  busy(true);
  asking = new AbortController();
  try {
    const body = JSON.stringify({ message: text, ...(conversation && { conversation }), ...(replaces && { replaces }) });
    const headers = { "content-type": "application/json" };
    const response = await api("/api/chat", { method: "POST", headers, body, signal: asking.signal });
    name(response.headers.get("x-conversation-id"));
    offer(asked, response.headers.get("x-turn-id"));
    await follow(response, answer);
  } catch (error) {
    answer.error(error.message);
  } finally {
    busy(false);
  }
  await list();
};

const name = (id) => {
  conversation = id;
  $("title").textContent = id ?? "New conversation";
  $("delete").hidden = !id;
  const hash = id ? `#${encodeURIComponent(id)}` : "";
  if (location.hash !== hash) history.pushState(null, "", hash || location.pathname);
};

/** Shows the conversations. Without an answer, the list stays as it is. */
const list = async () => {
  const response = await api("/api/conversations").catch(() => null);
  const conversations = (await response?.json().catch(() => null))?.conversations;
  if (!conversations) return;
  $("conversations").replaceChildren(...conversations.map((id) => {
    const link = document.createElement("a");
    link.href = `#${encodeURIComponent(id)}`;
    link.textContent = id;
    if (id === conversation) link.ariaCurrent = "true";
    const item = document.createElement("li");
    item.append(link);
    return item;
  }));
};

const open = async () => {
  const id = decodeURIComponent(location.hash.slice(1)) || null;
  if (id === conversation && messages.childElementCount) return;
  messages.replaceChildren();
  editing = null;
  document.body.classList.remove("menu");
  name(id);
  if (id) {
    const response = await fetch(`/api/conversations/${encodeURIComponent(id)}`);
    const shown = response.ok ? (await response.json()).messages : [];
    const live = await api(`/api/conversations/${encodeURIComponent(id)}/stream`).catch(() => null);
    // The running turn shows its own answer.
    const end = live?.status === 200 ? shown.findLastIndex((message) => message.role === "user") + 1 : shown.length;
    let answer = null;
    for (const message of shown.slice(0, end)) {
      if (message.role === "user") { showUser(message.text, message.turn); answer = null; continue; }
      answer ??= new Answer();
      if (message.role === "assistant") {
        if (message.text) answer.text(message.text);
        for (const call of message.calls) answer.start(call.id, call.tool, call.args);
      } else {
        if (message.is_error) answer.fail(message.id);
        answer.end(message.id, message.result);
      }
    }
    if (live?.status === 200) follow(live, new Answer());
  }
  await list();
};

$("form").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = $("text").value.trim();
  if (!text || !$("stop").hidden) return;
  $("text").value = "";
  const send = editing ?? ask;
  editing = null;
  send(text);
});
$("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    $("form").requestSubmit();
  }
});
$("stop").addEventListener("click", () => {
  if (running) api(`/api/conversations/${encodeURIComponent(running)}/stop`, { method: "POST" });
  else asking.abort();
});
$("new").addEventListener("click", () => { name(null); messages.replaceChildren(); document.body.classList.remove("menu"); $("text").focus(); list(); });
$("delete").addEventListener("click", async () => {
  if (!confirm("Delete this conversation?")) return;
  await api(`/api/conversations/${encodeURIComponent(conversation)}`, { method: "DELETE" });
  $("new").click();
});
$("menu").addEventListener("click", () => {
  const isOpen = document.body.classList.toggle("menu");
  $("menu").ariaExpanded = String(isOpen);
});
addEventListener("popstate", open);
addEventListener("hashchange", open);
open();
