import { type AgentSetup, LLM_GATEWAY_PORT } from '@svc/contract';
import type { Microvm } from '@svc/microvm';
import { RateLimit } from '../../sessions/rate-limit.ts';
import { LinkConnection } from './link-connection.ts';

/** The second time shows what the first has left to do. */
const TIMES = 2;

const PACE = { perSecond: 1024 * 1024, burst: 1024 * 1024 };

const SETUP: AgentSetup = {
  mode: 'session',
  agent: 'deictic',
  model: 'rehearsal',
  dialect: 'anthropic',
  gateway: `http://127.0.0.1:${LLM_GATEWAY_PORT}/anthropic`,
  wireVersion: 2,
  env: { REHEARSAL: '1' },
  restoreFiles: false,
};

/**
 * Goes through the configuration of an idle VM's agent runtime, which keeps nothing of it: memory and code that are
 * used for the first time after a restore are slow, and an owner need not wait for that.
 * @throws MicrovmError; the signal's reason
 */
export async function warmUpRuntime(
  vm: Pick<Microvm, 'dialAgent'>,
  signal: AbortSignal,
): Promise<void> {
  for (let time = 1; time <= TIMES; time += 1) {
    const conversation = new LinkConnection(await vm.dialAgent(signal), new RateLimit(PACE));
    try {
      conversation.send({ type: 'rehearse', token: 'rehearsal', setup: SETUP });
      await conversation.expect('rehearsed', signal);
    } finally {
      conversation.end();
    }
  }
}
