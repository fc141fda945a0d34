import type { Agent } from '@svc/contract';
import type { Rule, Script } from '@svc/model-server';

const PROGRAM = `primes = [n for n in range(2, 30) if all(n % d for d in range(2, n))]
print(*primes)`;
const WRITE = `cat > primes.py <<'END'\n${PROGRAM}\nEND\necho primes.py is written`;
const RUN = 'python3 primes.py';
const OUTPUT = '2 3 5 7 11 13 17 19 23 29';
/** So that it can be seen how the words come. */
const CHUNK_DELAY_MS = 40;

/** How each agent's tool for commands is called, and how the command is given to it. */
const SHELLS: Readonly<Record<Agent, (command: string) => { name: string; arguments: unknown }>> = {
  deictic: (command) => ({ name: 'shell', arguments: { command } }),
  'claude-code': (command) => ({
    name: 'Bash',
    arguments: { command, description: 'Run a command' },
  }),
  codex: (command) => ({ name: 'exec_command', arguments: { cmd: command } }),
};

/** What the model of the demo says to its prompts. */
export function demoScript(agent: Agent): Script {
  const run = (command: string) => ({ tool_calls: [SHELLS[agent](command)] });
  const rules: Rule[] = [
    { when: { tool: 'primes\\.py is written' }, reply: run(RUN) },
    {
      when: { tool: OUTPUT },
      times: 1,
      reply: says(`primes.py is there and it works. It prints: ${OUTPUT}.`),
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
