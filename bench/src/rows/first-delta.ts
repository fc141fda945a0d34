import { inTurns, timed } from '../measure/in-turns.ts';
import { differenceResult, type Row } from '../measure/row.ts';
import { PROMPT } from '../sessions/bench-models.ts';
import { BenchSessions } from '../sessions/bench-sessions.ts';

const AT_MOST_MS = 250;
/** Asks the gateway as the agent does, and says in seconds when the first byte of the answer came. */
const BARE_CLIENT = `curl -sN -o /dev/null -w '%{time_starttransfer}' \
  -H 'content-type: application/json' -H 'anthropic-version: 2023-06-01' \
  -d '{"model":"claude-sonnet-4-5","max_tokens":64,"stream":true,"messages":[{"role":"user","content":"${PROMPT}"}]}' \
  http://172.30.0.1:7200/anthropic/v1/messages`;

/** From a task to the agent's first word, against a bare client in the same VM with the same prompt. */
export const firstDelta: Row = {
  name: 'first-delta',
  pool: 2,
  async run({ service, models, runs, progress }) {
    const sessions = await BenchSessions.open(service, models.server.url);
    const session = await sessions.create();
    try {
      const { vm_id } = await service.client.sessions.get(session.chat_session_id);
      if (vm_id === undefined) throw new Error('the session has no sandbox');
      const talk = await sessions.attach(session);
      const samples = await inTurns({
        runs,
        ours: async () => {
          const took = await timed(async () => {
            talk.task(PROMPT);
            await talk.until('text_delta');
          });
          await talk.until('task_completed');
          return took;
        },
        comparison: async () => {
          const { output } = await service.client.sandboxes.exec(vm_id, BARE_CLIENT);
          return Number(output) * 1000;
        },
        onTurn: (done) => progress(`${done}/${runs}`),
      });
      await talk.close();
      const accelerated = (await service.accelerator()) === 'kvm';
      return [
        differenceResult({
          name: this.name,
          what: 'task to the first text_delta (deictic)',
          against: 'first byte at a bare client in the same VM',
          unit: 'ms',
          ...samples,
          ...(accelerated ? { atMost: AT_MOST_MS } : {}),
          notes: ['The bound of 250 ms holds with KVM; emulation is reported only.'],
        }),
      ];
    } finally {
      await sessions.delete(session);
    }
  },
};
