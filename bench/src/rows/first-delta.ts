import { inTurns, timed } from '../measure/in-turns.ts';
import { differenceResult, type Row } from '../measure/row.ts';
import { PROMPT } from '../sessions/bench-models.ts';
import { BenchSessions } from '../sessions/bench-sessions.ts';

const AT_MOST_MS = 250;
/** Sends the agent's request to the gateway and prints the time to the first byte of the answer, in seconds. */
const BARE_CLIENT = `curl -sN -o /dev/null -w '%{time_starttransfer}' \
  -H 'content-type: application/json' -H 'x-api-key: svc-llm-gateway' -H 'anthropic-version: 2023-06-01' \
  -d '{"model":"claude-sonnet-4-5","max_tokens":64,"stream":true,"messages":[{"role":"user","content":"${PROMPT}"}]}' \
  http://172.30.0.1:7200/anthropic/v1/messages`;

/** Time from a task to the agent's first text, compared with a bare client in the same VM and the same prompt. */
export const firstDelta: Row = {
  name: 'first-delta',
  pool: 2,
  async run({ service, models, runs, progress }) {
    const sessions = await BenchSessions.open(service, models.server.url);
    const session = await sessions.create();
    try {
      const { vm_id } = await service.client.sessions.get(session.chat_session_id);
      if (vm_id === undefined) throw new Error('the session has no sandbox');
      const client = await sessions.attach(session);
      const samples = await inTurns({
        runs,
        ours: async () => {
          const took = await timed(async () => {
            client.task(PROMPT);
            await client.until('text_delta');
          });
          await client.until('task_completed');
          return took;
        },
        comparison: async () => {
          const { output } = await service.client.sandboxes.exec(vm_id, BARE_CLIENT);
          return Number(output) * 1000;
        },
        onTurn: (done) => progress(`${done}/${runs}`),
      });
      await client.close();
      const accelerated = (await service.accelerator()) === 'kvm';
      return [
        differenceResult({
          name: this.name,
          what: 'task to the first text_delta (deictic)',
          against: 'first byte at a bare client in the same VM',
          unit: 'ms',
          ...samples,
          ...(accelerated ? { atMost: AT_MOST_MS } : {}),
          notes: [`the bound of ${AT_MOST_MS} ms applies with KVM only`],
        }),
      ];
    } finally {
      await sessions.delete(session);
    }
  },
};
