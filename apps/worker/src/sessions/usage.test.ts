import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startModelServer } from '@svc/model-server';
import { createSelfSigned } from '@svc/service-kit';
import { freePort } from '@svc/service-kit/testing';
import { request } from 'undici';
import { expect, it } from 'vitest';
import { SessionLab } from '../../test/session-lab.ts';

it('stores, shows and reports the usage that the vendor reports, and uses the new key after a rotation', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'svc-usage-'));
  const tls = await createSelfSigned({ commonName: 'm', names: ['127.0.0.1'], days: 1 });
  const egressCaFile = join(directory, 'ca.pem');
  await writeFile(egressCaFile, tls.cert);
  const usage = { input_tokens: 11, output_tokens: 7 };
  await using model = await startModelServer({
    tls,
    script: { rules: [{ reply: { text: 'hi', usage } }] },
  });
  const { hostname, port } = new URL(model.url);
  const gatewayPort = await freePort('127.0.0.1');
  await using lab = await SessionLab.start({
    gatewayPort,
    egress: { egressAllowHosts: [{ host: hostname, port: Number(port) }], egressCaFile },
  });
  const { harness, store } = lab;
  const { onRestored } = harness.host;
  harness.host.onRestored = (vm) => {
    onRestored(vm);
    vm.host = '127.0.0.1';
  };
  store.secrets = { llm: { api_key: 'sk-first', base_url: model.url }, env: {} };
  const { vmId, client } = await lab.startAttached();
  lab.guest.frame({ type: 'tool_call', id: 'c1', name: 'shell', arguments: {} });
  const ask = async () => {
    const answer = await request(`http://127.0.0.1:${gatewayPort}/anthropic/v1/messages`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-api-key': 'svc-llm-gateway' },
      body: JSON.stringify({
        model: 'claude-test',
        max_tokens: 9,
        messages: [{ role: 'user', content: 'x' }],
      }),
    });
    await answer.body.dump();
    return answer.statusCode;
  };
  expect(await ask()).toBe(200);
  expect(await client.next(({ type }) => type === 'usage')).toMatchObject(usage);
  expect(model.requests.at(-1)?.headers['x-api-key']).toBe('sk-first');
  store.secrets = { llm: { api_key: 'sk-second', base_url: model.url }, env: {} };
  await harness.call('POST', `/sandboxes/${vmId}/config-update`, {
    json: { bundle: 'llm', version: 2, keys: [] },
  });
  expect(await ask()).toBe(200);
  expect(model.requests.at(-1)?.headers['x-api-key']).toBe('sk-second');
  await harness.json('DELETE', `/sandboxes/${vmId}`);
  await expect(ask()).rejects.toThrow();
  await expect
    .poll(() => harness.controlPlane.usage.at(-1))
    .toMatchObject({ vm_id: vmId, input_tokens: 22, output_tokens: 14, tool_calls: 1 });
  await rm(directory, { recursive: true });
});
