// The messages of a conversation, as the server has stored them.

import { Answer } from "./answer/answer.js";
import { UserMessage } from "./user_message.js";

/** Shows stored messages. `offer` gets each message of the user with its turn. */
export const show = (messages, stored, offer) => {
  let answer = null;
  let count = 0;
  for (const message of stored) {
    if (message.role === "user") {
      const shown = new UserMessage(messages, message.text);
      if (message.turn) offer(shown, message.turn);
      answer?.end();
      answer = null;
      continue;
    }
    answer ??= new Answer(messages);
    for (const event of events(message, ++count)) answer.take(event);
  }
  answer?.end();
};

/** Returns the events that an answer or a result had when it streamed. */
const events = (message, count) => {
  if (message.role === "tool") {
    const failed = message.is_error ? [{ type: "error", id: message.id, error: message.result }] : [];
    return [...failed, { type: "tool_call_end", id: message.id, result: message.result }];
  }
  return (message.parts ?? []).flatMap((part, place) => {
    const block = `${count}.${place}`;
    switch (part.type) {
      case "call": return { type: "tool_call_start", id: part.id, tool: part.tool, args: part.args };
      case "reasoning": return { type: "reasoning", block, content: part.text };
      default: return text(block, part);
    }
  });
};

const text = (block, { text, nodes }) => {
  const content = { type: "content", block, content: text };
  return nodes.length ? [content, { type: "rendered", block, keep: 0, nodes, rest: "" }] : [content];
};
