import { type PlacedAgent, uuidOf } from '@svc/contract';
import type { AgentCredentials } from '../agents/credentials.ts';
import type { SessionApi } from '../control-plane/session-api.ts';
import { type AgentDeps, type AgentStart, buildParts } from '../sessions/build-parts.ts';
import { OneShot } from './one-shot.ts';
import { OneShotTurns } from './one-shot-turns.ts';
import { PersistedState, type PersistedStateOptions } from './persisted-state.ts';

/** The parts of the worker that all one-shot agents share. */
export interface OneShotDeps extends AgentDeps {
  readonly api: Pick<SessionApi, 'agentSecrets'>;
  readonly egress: PersistedStateOptions['egress'];
}

/** Builds a one-shot agent, to which clients attach with the UUID in the sandbox's id. Nothing runs yet. */
export function buildOneShot(
  start: Omit<AgentStart, 'id' | 'generation'>,
  deps: OneShotDeps,
): OneShot {
  const { id: vmId, assignment } = start.sandbox;
  const { onFault } = deps;
  let persisted: PersistedState | undefined;
  let turns: OneShotTurns | undefined;
  const parts = buildParts(
    { ...start, id: uuidOf(vmId), generation: assignment.generation },
    deps,
    {
      turns: ({ credentials, closed }) => {
        persisted = persistedState(vmId, start.placed, credentials, deps);
        closed.addEventListener('abort', () => persisted?.close(), { once: true });
        turns = new OneShotTurns(persisted);
        return turns;
      },
      // The guest repeats the states that an earlier worker received but did not send.
      lastN: 0,
      handler: (pipeline) => turns?.handle(pipeline) ?? pipeline,
      events: {
        exited: (exitCode) => oneShot.noteExit(exitCode),
        lost: () => oneShot.noteLoss(),
      },
    },
  );
  const oneShot: OneShot = new OneShot(parts, { persisted, onFault });
  return oneShot;
}

function persistedState(
  vmId: string,
  { persistence_url: url, resume_id: sessionId, kind: agent }: PlacedAgent,
  credentials: AgentCredentials,
  { egress, clock, onFault }: OneShotDeps,
): PersistedState | undefined {
  if (url === undefined) return undefined;
  return new PersistedState({ egress, url, credentials, sessionId, vmId, agent, clock, onFault });
}
