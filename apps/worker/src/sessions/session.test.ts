import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { LIMITS } from '@svc/contract';
import { MicrovmError } from '@svc/microvm';
import { describe, expect, it } from 'vitest';
import { useSessionLab } from '../../test/session-lab.ts';

const lab = useSessionLab();

describe('a session', () => {
  it('is created once its agent is configured with everything but the model’s key', async () => {
    const { guest, harness } = lab();
    lab().store.secrets = {
      llm: { api_key: 'sk-the-real-key' },
      env: { GREETING: 'hello' },
    };
    const { vmId } = await harness.startSession();
    expect(guest.setup).toEqual({
      mode: 'session',
      agent: 'deictic',
      model: 'claude-test',
      dialect: 'anthropic',
      gateway: 'http://172.30.0.1:7200/anthropic',
      wireVersion: 2,
      env: { GREETING: 'hello' },
      restoreFiles: false,
    });
    const { labels } = harness.host.vmOf(vmId);
    expect(labels).toMatchObject({ agent_token: guest.all('configure')[0]?.token });
    expect(JSON.stringify([guest.heard, labels])).not.toContain('sk-the-real-key');
    expect(await harness.json('GET', `/sandboxes/${vmId}`)).toMatchObject({
      body: { state: 'running', agent_status: 'running' },
    });
  });

  it('is refused when its values have become too large since the control plane checked them', async () => {
    const { harness, guest, store } = lab();
    store.secrets = { llm: { api_key: 'sk' }, env: { A: 'x'.repeat(LIMITS.sessionEnvBytes) } };
    await expect(harness.startSession()).rejects.toThrow('400');
    expect(guest.setup).toBeUndefined();
  });

  it('whose VM fails leaves no files behind', async () => {
    const { harness } = lab();
    harness.host.onRestored = (vm) => {
      vm.faults.personalize = new MicrovmError('timeout', 'it does not answer');
    };
    await expect(harness.startSession()).rejects.toThrow();
    expect(await readdir(join(harness.dataDir, 'sessions'))).toEqual([]);
  });

  it('sends a client ready, then a whole turn', async () => {
    const { client } = await lab().startAttached();
    expect(client.frames).toEqual([
      {
        type: 'ready',
        agent: 'deictic',
        model: 'claude-test',
        resumed: false,
        generation: 1,
        last_seq: 0,
        ts: expect.any(String),
      },
    ]);
    client.send({ type: 'task', prompt: 'dance', id: 't1', extra: 1 });
    await client.next(({ type }) => type === 'task_completed');
    expect(lab().guest.all('client')).toEqual([
      { type: 'client', c: 1, frame: { type: 'task', prompt: 'dance', id: 't1' } },
    ]);
    expect(client.types).toEqual(['ready', 'task_started', 'text_delta', 'task_completed']);
    expect(client.seqs).toEqual([1, 2, 3]);
    await lab().guest.drained();
    await expect.poll(() => lab().store.frames).toHaveLength(3);
  });
});
