// OpenAI's library for Node: reads one stream of text, as the other clients do, and tells what that cost.

import { readFileSync } from 'node:fs';
import OpenAI from 'openai';

const WARM_UP = 'text-200-16';

const monotonicNs = () => Number(process.hrtime.bigint());

const clientOf = (base, scenario) => new OpenAI({ apiKey: 'none', baseURL: `${base}/${scenario}/v1` });

async function turn(client) {
  const stream = await client.chat.completions.create({
    model: 'gpt-4o-mini',
    messages: [{ role: 'user', content: 'What now?' }],
    stream: true,
    stream_options: { include_usage: true },
  });
  let [textBytes, firstTextAt] = [0, 0];
  for await (const chunk of stream) {
    const text = chunk.choices[0]?.delta.content;
    if (text) {
      firstTextAt ||= monotonicNs();
      textBytes += Buffer.byteLength(text);
    }
  }
  return { text_bytes: textBytes, first_text_at: firstTextAt };
}

function peakKib() {
  return Number(/VmHWM:\s*(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))[1]);
}

const [mode, base, scenario] = process.argv.slice(2);
if (mode === 'warm') {
  await turn(clientOf(base, WARM_UP));
}
// Making a client may load certificates, which is no cost of a chunk.
const client = clientOf(base, scenario);
const [cpu, wall] = [process.cpuUsage(), monotonicNs()];
const told = await turn(client);
const { user, system } = process.cpuUsage(cpu);
const report = {
  requests: 1,
  ...told,
  cpu_ns: (user + system) * 1000,
  wall_ns: monotonicNs() - wall,
  peak_kib: peakKib(),
};
console.log(JSON.stringify({ Streamed: report }));
