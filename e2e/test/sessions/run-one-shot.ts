import type { Agent, CreateSandboxRequest, SandboxRecord } from '@svc/contract';
import { until } from '@svc/service-driver';
import { MODELS, type SessionFixture } from './session-fixture.ts';

/** Runs a one-shot agent until it exits and returns its sandbox's record. The caller deletes the sandbox. */
export async function runOneShot(
  { account, models, key }: SessionFixture,
  agent: Agent,
  task: string,
  more: Partial<CreateSandboxRequest> = {},
): Promise<SandboxRecord> {
  const { sandboxes } = account.client;
  const { vm_id } = await sandboxes.create({
    template: 'standard',
    agent,
    llm_key: key,
    model: MODELS[agent].model,
    task,
    env_vars: { LLM_BASE_URL: models.url },
    idle_timeout_seconds: 600,
    ...more,
  });
  return until(
    'the agent has exited',
    async () => {
      const now = await sandboxes.get(vm_id);
      return now.agent_exit_code !== undefined && now;
    },
    { deadlineMs: 400_000 },
  );
}
