// A chat with `useChat` in React, which `use_chat.mjs` bundles with each line of the AI SDK.

import { useChat } from "@ai-sdk/react";
import { DefaultChatTransport } from "ai";
import { createElement, useState } from "react";
import { createRoot } from "react-dom/client";

const { api, profile, id, resume, disconnect } = Object.fromEntries(new URLSearchParams(location.search));

const transport = new DefaultChatTransport({
  api,
  headers: { "x-ui-profile": profile, ...(disconnect && { "x-on-disconnect": disconnect }) },
  // The server's memory has the earlier messages.
  prepareSendMessagesRequest: ({ id, messages, trigger, messageId }) => ({
    body: { id, messages: messages.slice(-1), trigger, messageId },
  }),
});

const Part = ({ part }) => {
  switch (part.type) {
    case "text": return createElement("p", { className: "text" }, part.text);
    case "reasoning": return createElement("p", { className: "reasoning" }, part.text);
    case "dynamic-tool": {
      const shown = JSON.stringify(part.output ?? part.errorText ?? part.input);
      return createElement("p", { className: "tool", "data-state": part.state }, `${part.toolName} ${shown}`);
    }
    default: return null;
  }
};

const Message = ({ message }) =>
  createElement("article", { className: message.role }, message.parts.map((part, key) => createElement(Part, { part, key })));

const Chat = () => {
  const [text, setText] = useState("");
  const { messages, sendMessage, regenerate, stop, status, error } = useChat({ id, transport, resume: resume === "true" });
  const submit = (event) => {
    event.preventDefault();
    sendMessage({ text });
    setText("");
  };
  return createElement(
    "main",
    { "data-status": status },
    messages.map((message) => createElement(Message, { message, key: message.id })),
    createElement("form", { onSubmit: submit }, createElement("input", { id: "text", value: text, onChange: ({ target }) => setText(target.value) })),
    createElement("button", { id: "regenerate", onClick: () => regenerate() }, "Answer again"),
    createElement("button", { id: "stop", onClick: stop }, "Stop"),
    error && createElement("p", { role: "alert" }, error.message),
  );
};

createRoot(document.getElementById("root")).render(createElement(Chat));
