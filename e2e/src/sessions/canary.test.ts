import { readFile } from 'node:fs/promises';
import { AGENTS } from '@svc/contract';
import { vmPid } from '@svc/service-driver';
import { describe, expect, test } from 'vitest';
import { memoryHolds } from '../../test/machine/process-memory.ts';
import { useSessionFixture } from '../../test/sessions/session-fixture.ts';
import { shared } from '../../test/shared-service.ts';

/** Looks for a text in every environment, command line and file of the guest. */
const searchGuest = (text: string) => `python3 - '${text}' <<'PYTHON'
import os, sys
text = sys.argv[1].encode()
# The search itself names the text on its command line.
own = {str(os.getpid()), str(os.getppid())}
found = []
for pid in filter(str.isdigit, os.listdir('/proc')):
    for name in ('environ', 'cmdline'):
        try:
            if pid not in own and text in open(f'/proc/{pid}/{name}', 'rb').read():
                found.append(f'/proc/{pid}/{name}')
        except OSError:
            continue
for top in ('/home', '/root', '/run', '/tmp', '/var', '/etc', '/dev/shm'):
    for folder, _, files in os.walk(top):
        for name in files:
            path = os.path.join(folder, name)
            try:
                if os.path.isfile(path) and text in open(path, 'rb').read():
                    found.append(path)
            except OSError:
                continue
print('\\n'.join(found))
PYTHON`;

const fixture = useSessionFixture({
  rules: [{ when: { user: 'hello' }, reply: { text: 'Hello to you.' } }],
});

describe.concurrent.each([...AGENTS])('%s', (agent) => {
  test('the key is nowhere in the guest', { timeout: 1_200_000 }, async () => {
    const { account, key, models } = fixture();
    const visible = `visible-${agent}-4711`;
    await account.client.secrets.create(`visible-${agent}`, { VISIBLE: visible });
    const session = await fixture().create(agent, { secrets: ['llm', `visible-${agent}`] });
    const client = await fixture().attach(session);
    const before = models.requests.length;
    await client.task('Say hello', 'hello');
    client.connection.exec('sleep 3600');
    await client.task('Say hello again', 'again');
    expect(models.requests.length).toBeGreaterThan(before);
    expect(models.requests.every((request) => JSON.stringify(request.headers).includes(key))).toBe(
      true,
    );

    const vmId = await fixture().sandboxOf(session);
    // Before a search in the guest takes the key there.
    const qemu = await vmPid(shared.address.dataDir, vmId);
    expect(await memoryHolds(qemu, visible)).toBe(true);
    expect(await memoryHolds(qemu, key)).toBe(false);

    // The search finds what is there: the other value of the bundles is in the environment of processes.
    const { output: seen } = await account.client.sandboxes.exec(vmId, searchGuest(visible));
    expect(seen).toMatch(/environ/);
    const { output } = await account.client.sandboxes.exec(vmId, searchGuest(key));
    expect(output.trim()).toBe('');

    expect(JSON.stringify(client.frames)).not.toContain(key);
    const { content } = await account.client.sandboxes.logs(vmId, { bytes: 1_048_576 });
    expect(content).not.toContain(key);
    expect(await readFile(`${shared.address.dataDir}/service.log`, 'utf8')).not.toContain(key);
    await fixture().sessions.delete(session.chat_session_id);
  });
});
