// A chat with `useChat` in React, which `use_chat.mjs` bundles with each line of the AI SDK.

import { useChat } from "@ai-sdk/react";
import * as ai from "ai";
import { createElement, useState } from "react";
import { createRoot } from "react-dom/client";

const { api, id, load, resume, disconnect } = Object.fromEntries(new URLSearchParams(location.search));

const transport = new ai.DefaultChatTransport({
  api,
  headers: { ...(disconnect && { "x-on-disconnect": disconnect }) },
  // The server's memory has the earlier messages.
  prepareSendMessagesRequest: ({ id, messages, trigger, messageId }) => ({
    body: { id, messages: messages.slice(-1), trigger, messageId },
  }),
});

const Part = ({ part, decide }) => {
  switch (part.type) {
    case "text": return createElement("p", { className: "text" }, part.text);
    case "reasoning": return createElement("p", { className: "reasoning" }, part.text);
    case "dynamic-tool": {
      const shown = JSON.stringify(part.output ?? part.errorText ?? part.input);
      const button = (name, approved) =>
        createElement("button", { onClick: () => decide({ id: part.approval.id, approved, reason: approved ? undefined : "not now" }) }, name);
      return createElement(
        "p",
        { className: "tool", "data-state": part.state },
        `${part.toolName} ${shown}`,
        part.state === "approval-requested" && [button("Approve", true), button("Deny", false)].map((button, key) => createElement("span", { key }, button)),
      );
    }
    default: return null;
  }
};

const Message = ({ message, decide }) =>
  createElement("article", { className: message.role }, message.parts.map((part, key) => createElement(Part, { part, decide, key })));

const Chat = ({ loaded }) => {
  const [text, setText] = useState("");
  const { messages, sendMessage, regenerate, stop, status, error, addToolApprovalResponse } = useChat({
    id,
    messages: loaded,
    transport,
    resume: resume === "true",
    // The first line has no approvals.
    sendAutomaticallyWhen: ai.lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  const submit = (event) => {
    event.preventDefault();
    sendMessage({ text });
    setText("");
  };
  return createElement(
    "main",
    { "data-status": status },
    messages.map((message) => createElement(Message, { message, decide: addToolApprovalResponse, key: message.id })),
    createElement("form", { onSubmit: submit }, createElement("input", { id: "text", value: text, onChange: ({ target }) => setText(target.value) })),
    createElement("button", { id: "regenerate", onClick: () => regenerate() }, "Answer again"),
    createElement("button", { id: "stop", onClick: stop }, "Stop"),
    error && createElement("p", { role: "alert" }, error.message),
  );
};

/** Returns the messages that the server has. */
const stored = async () => {
  const response = await fetch(`${api}/${id}`);
  return (await response.json()).messages;
};

const show = (loaded) => createRoot(document.getElementById("root")).render(createElement(Chat, { loaded }));
if (load === "true") stored().then(show);
else show([]);
