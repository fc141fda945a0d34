import type { Agent } from '@svc/contract';
import type { Rule, Script } from '@svc/model-server';

/** The prompts of the demo, in order. The last one goes to a fresh sandbox. */
export const PROMPTS = {
  work: 'Write primes.py, which prints the first ten primes in one line, and run it.',
  remember: 'My favourite of them is 23. Keep that in mind.',
  recall: 'Run the program again, and tell me which of its primes is my favourite.',
} as const;

/** A part of the earlier conversation. An agent that still has the conversation sends it to the model again. */
export const REMEMBERED = 'favourite of them is 23';

const PROGRAM = `primes = [n for n in range(2, 30) if all(n % d for d in range(2, n))]
print(*primes)`;
const WRITE = `cat > primes.py <<'END'\n${PROGRAM}\nEND\necho primes.py is written`;
const RUN = 'python3 primes.py';
const OUTPUT = '2 3 5 7 11 13 17 19 23 29';
/** Makes the streaming of the answers visible. */
const CHUNK_DELAY_MS = 40;

/** Calls of each agent's shell tool. */
const SHELL_CALLS: Readonly<
  Record<Agent, (command: string) => { name: string; arguments: unknown }>
> = {
  deictic: (command) => ({ name: 'shell', arguments: { command } }),
  'claude-code': (command) => ({
    name: 'Bash',
    arguments: { command, description: 'Run a command' },
  }),
  codex: (command) => ({ name: 'exec_command', arguments: { cmd: command } }),
};

/** The scripted model's answers to {@link PROMPTS} and to the tool results that follow them. */
export function demoScript(agent: Agent): Script {
  const run = (command: string) => ({ tool_calls: [SHELL_CALLS[agent](command)] });
  const rules: Rule[] = [
    { when: { tool: 'primes\\.py is written' }, reply: run(RUN) },
    {
      when: { tool: OUTPUT },
      times: 1,
      reply: says(`I wrote primes.py and it works. It prints: ${OUTPUT}.`),
    },
    {
      when: { tool: OUTPUT },
      reply: says(`It still prints ${OUTPUT}, and 23 is your favourite, as you told me before.`),
    },
    { when: { user: 'first ten primes' }, reply: run(WRITE) },
    {
      when: { user: 'favourite of them is (\\d+)' },
      reply: says('Noted: $1 is your favourite of the ten.'),
    },
    { when: { user: 'Run the program again' }, reply: run(RUN) },
  ];
  return { rules };
}

function says(text: string): Rule['reply'] {
  return { text: text.split(/(?<= )/), chunk_delay_ms: CHUNK_DELAY_MS };
}
