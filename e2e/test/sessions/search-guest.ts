import type { SvcClient } from '@svc/sdk';

/** The command line of the search itself contains the texts, so it skips its own processes. */
const SEARCH = `
import json, os, sys
texts = sys.argv[1:]
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
`;

/** Searches all environments, command lines and files of a guest. Returns the paths in which each of the texts was found. */
export async function searchGuest(
  { sandboxes }: Pick<SvcClient, 'sandboxes'>,
  vmId: string,
  texts: readonly string[],
): Promise<Readonly<Record<string, readonly string[]>>> {
  const command = `python3 - ${texts.join(' ')} <<'PYTHON'${SEARCH}PYTHON`;
  const { output } = await sandboxes.exec(vmId, command);
  return JSON.parse(output);
}
