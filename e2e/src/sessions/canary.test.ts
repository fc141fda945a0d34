import { readFile } from 'node:fs/promises';
import { AGENTS } from '@svc/contract';
import { vmPid } from '@svc/service-driver';
import { describe, expect, test } from 'vitest';
import { memoryHolds } from '../../test/machine/process-memory.ts';
import { useSessionFixture } from '../../test/sessions/session-fixture.ts';
import { shared } from '../../test/shared-service.ts';

/** Searches all environments, command lines and files of the guest for several texts in one pass. */
const searchGuest = (...texts: readonly string[]) => `python3 - ${texts.join(' ')} <<'PYTHON'
import json, os, sys
texts = sys.argv[1:]
# The command line of the search itself contains the texts.
own = {str(os.getpid()), str(os.getppid())}
found = {text: [] for text in texts}
def search(path):
    try:
        content = open(path, 'rb').read()
    except OSError:
        return
    for text in texts:
        if text.encode() in content:
            found[text].append(path)
for pid in filter(str.isdigit, os.listdir('/proc')):
    if pid not in own:
        search(f'/proc/{pid}/environ')
        search(f'/proc/{pid}/cmdline')
for top in ('/home', '/root', '/run', '/tmp', '/var', '/etc', '/dev/shm'):
    for folder, _, files in os.walk(top):
        for name in files:
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                search(path)
print(json.dumps(found))
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
    // This precedes the search in the guest, because the command line of the search contains the key.
    const qemu = await vmPid(shared.address.dataDir, vmId);
    expect(await memoryHolds(qemu, visible)).toBe(true);
    expect(await memoryHolds(qemu, key)).toBe(false);

    // The other value of the bundles is in the environment of processes, which shows that the search works.
    const { output } = await account.client.sandboxes.exec(vmId, searchGuest(visible, key));
    const found = JSON.parse(output) as Record<string, string[]>;
    expect(found[visible]?.join('\n')).toMatch(/environ/);
    expect(found[key]).toEqual([]);

    expect(JSON.stringify(client.frames)).not.toContain(key);
    const { content } = await account.client.sandboxes.logs(vmId, { bytes: 1_048_576 });
    expect(content).not.toContain(key);
    expect(await readFile(`${shared.address.dataDir}/service.log`, 'utf8')).not.toContain(key);
    await fixture().sessions.delete(session.chat_session_id);
  });
});
