import { CreateSandboxResponse, DeleteSandboxResponse, SandboxRecord } from '@svc/contract';
import { until } from '@svc/service-driver';
import { afterAll, expect, test } from 'vitest';
import { expectValid } from '../../test/assertions.ts';
import { shared } from '../../test/shared-service.ts';
import { TestSandbox, useSandbox } from '../../test/test-sandbox.ts';

const sandbox = useSandbox({
  env_vars: { GREETING: 'hello world', EMPTY: '' },
  metadata: { user_id: 'u_1', nested: { list: [1, 'two', null] } },
  idle_timeout_seconds: 1800,
  max_lifetime_seconds: 999_999,
});

const account = await shared.signUp();
afterAll(() => account.client.close());

test('a create answers 201 when the sandbox is running', async () => {
  const answer = await shared.raw({
    method: 'POST',
    target: '/v1/sandboxes',
    apiKey: account.apiKey,
    body: { template: 'standard', a_field_of_the_future: true },
  });
  expect(answer.status).toBe(201);
  const created = answer.json<CreateSandboxResponse>();
  expectValid(CreateSandboxResponse, created);
  expect(created.state).toBe('running');
  expect(answer.headers['x-request-id']).toBeTruthy();
  const { output } = await account.client.sandboxes.exec(created.vm_id, 'echo ready');
  expect(output).toBe('ready\n');
  await account.client.sandboxes.delete(created.vm_id);
});

test('the record shows the requested values and the effective ones', async () => {
  const { account, id, hostPort } = sandbox();
  const record = await account.client.sandboxes.get(id);
  expectValid(SandboxRecord, record);
  expect(record).toMatchObject({
    vm_id: id,
    state: 'running',
    template: 'standard',
    host_port: hostPort,
    vcpu: 1,
    memory_mib: 512,
    disk_mib: 4096,
    idle_timeout_seconds: 1800,
    max_lifetime_seconds: 7200,
    metadata: { user_id: 'u_1', nested: { list: [1, 'two', null] } },
  });
  expect(record.rootfs).toBeTruthy();
  expect(record.cpu_fraction).toBeGreaterThan(0);
  expect(Date.parse(record.running_at ?? '')).toBeGreaterThanOrEqual(Date.parse(record.created_at));
});

test('the list is an array that has the owner’s sandboxes and no other account’s', async () => {
  const { id, account: owner } = sandbox();
  const list = async (apiKey: string) => {
    const answer = await shared.raw({ target: '/v1/sandboxes', apiKey });
    expect(answer.status).toBe(200);
    const records = answer.json<SandboxRecord[]>();
    expect(Array.isArray(records)).toBe(true);
    for (const record of records) expectValid(SandboxRecord, record);
    return records.map((record) => record.vm_id);
  };
  expect(await list(owner.apiKey)).toContain(id);
  expect(await list(account.apiKey)).not.toContain(id);
});

test('every command has the variables of the create', async () => {
  expect(await sandbox().run('printf "%s|" "$GREETING"; env | grep ^EMPTY=')).toBe(
    'hello world|EMPTY=',
  );
});

test('a delete answers when the sandbox is destroyed, and can be repeated while the record is kept', async () => {
  const doomed = await TestSandbox.create(account);
  const { sandboxes } = account.client;
  const answer = await sandboxes.delete(doomed.id);
  expectValid(DeleteSandboxResponse, answer);
  expect(answer).toEqual({ vm_id: doomed.id, state: 'destroyed' });
  const record = await sandboxes.get(doomed.id);
  expectValid(SandboxRecord, record);
  expect(record).toMatchObject({ state: 'destroyed', end_reason: 'deleted' });
  expect(Date.parse(record.ended_at ?? '')).toBeGreaterThan(0);
  expect(await sandboxes.delete(doomed.id)).toEqual({ vm_id: doomed.id, state: 'destroyed' });
  const { sandboxes: listed } = await sandboxes.list();
  expect(listed.find(({ vm_id }) => vm_id === doomed.id)).toMatchObject({ state: 'destroyed' });
});

test('concurrent deletes of one sandbox all get the same answer', async () => {
  const doomed = await TestSandbox.create(account);
  const answers = await Promise.all(
    Array.from({ length: 4 }, () => account.client.sandboxes.delete(doomed.id)),
  );
  for (const answer of answers) expect(answer).toEqual({ vm_id: doomed.id, state: 'destroyed' });
});

test('a delete ends a running command with an error', async () => {
  const doomed = await TestSandbox.create(account);
  await doomed.run('true');
  const running = doomed.exec('touch /tmp/started; sleep 600').then(
    () => 'answered',
    (error: unknown) => error,
  );
  await until('the command runs', async () => {
    const { exit_code } = await doomed.exec('test -e /tmp/started');
    return exit_code === 0;
  });
  await doomed.delete();
  expect(await running).toMatchObject({ name: 'SvcError', code: 'sandbox_not_running' });
});

test('requests that need a running sandbox answer 409 after it has ended', async () => {
  const ended = await TestSandbox.create(account);
  await ended.delete();
  const { sandboxes } = account.client;
  const calls = {
    exec: () => sandboxes.exec(ended.id, 'true'),
    upload: () => sandboxes.files.write(ended.id, '/tmp/a', 'a'),
    download: () => sandboxes.files.read(ended.id, '/etc/hostname'),
    cancel: () => sandboxes.cancel(ended.id),
    pause: () => sandboxes.pause(ended.id),
    resume: () => sandboxes.resume(ended.id),
  };
  for (const [name, call] of Object.entries(calls)) {
    await expect(call(), name).rejects.toMatchObject({ code: 'sandbox_not_running', status: 409 });
  }
});

test('a create without an idempotency key leaves no sandbox behind when its caller disconnects at any moment', async () => {
  const { client, apiKey } = await shared.signUp();
  for (const leaveAfterMs of [1, 20, 60, 150, 400]) {
    const create = {
      method: 'POST',
      target: '/v1/sandboxes',
      apiKey,
      body: { template: 'standard', idle_timeout_seconds: 3600 },
      signal: AbortSignal.timeout(leaveAfterMs),
    };
    const created = await shared.raw(create).then(
      (answer) => answer.json<CreateSandboxResponse>().vm_id,
      () => undefined,
    );
    // The create was faster than the disconnect, so the sandbox belongs to the caller.
    if (created !== undefined) await client.sandboxes.delete(created);
  }
  await until('no sandbox is left', async () => {
    const { sandboxes } = await client.sandboxes.list();
    return sandboxes.every(({ state }) => state === 'destroyed');
  });
  await client.close();
});
