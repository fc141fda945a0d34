import {
  type AgentInput,
  givenSize,
  type PlacedAgent,
  type PlaceSandboxRequest,
  type SandboxPlacement,
  type SandboxSize,
} from '@svc/contract';

/** A one-shot agent, as the control plane places it. */
export const ONE_SHOT: PlacedAgent & AgentInput = {
  kind: 'codex',
  mode: 'one_shot',
  vendor: 'openai',
  model: 'gpt-test',
  wire_version: 2,
  task: 'do it',
  resume_id: 'r1',
};

/** The agent of a session, as the control plane places it. */
export function sessionAgent(
  session: string,
  changes: Partial<NonNullable<PlacedAgent['session']>> = {},
): PlacedAgent {
  return {
    kind: 'deictic',
    mode: 'session',
    vendor: 'anthropic',
    model: 'claude-test',
    wire_version: 2,
    session: {
      chat_session_id: session,
      generation: 1,
      user_id: 'usr_a',
      app_id: 'app',
      set_id: 'default',
      resumed: false,
      ...changes,
    },
  };
}

let count = 0;

/** The parts of a placement that a test may set; each has a default. */
export type PlacementChanges = Partial<Omit<PlaceSandboxRequest, 'placement' | 'agent_input'>> &
  Partial<Omit<SandboxPlacement, 'size' | 'agent'>> &
  SandboxSize & { readonly agent?: PlacedAgent & AgentInput };

/** A request to place a sandbox, with an id of its own. */
export function placement(changes: PlacementChanges = {}): PlaceSandboxRequest {
  count += 1;
  const {
    template = 'standard',
    idle_timeout_seconds = 60,
    max_lifetime_seconds = 7200,
    agent,
    vcpu: _vcpu,
    memory_mib: _memory,
    disk_mib: _disk,
    ...rest
  } = changes;
  const { app, task, ...placed } = agent ?? {};
  return {
    vm_id: `vm_${count.toString(16).padStart(32, '0')}`,
    generation: 1,
    tenant_id: 'usr_a',
    created_at: new Date().toISOString(),
    env_vars: {},
    placement: {
      template,
      size: givenSize(changes),
      idle_timeout_seconds,
      max_lifetime_seconds,
      ...(agent === undefined ? {} : { agent: placed as PlacedAgent }),
    },
    ...(agent === undefined
      ? {}
      : {
          agent_input: {
            ...(app === undefined ? {} : { app }),
            ...(task === undefined ? {} : { task }),
          },
        }),
    ...rest,
  };
}
