import type { TestSandbox } from '../test-sandbox.ts';

/** An endpoint that the probe tries to reach. */
export interface Target {
  readonly host: string;
  readonly port: number;
  /** Default: tcp. */
  readonly protocol?: 'tcp' | 'udp';
  /** Source address to bind. */
  readonly from?: string;
}

const PROBE = `
import concurrent.futures, json, socket, sys

def probe(target):
    host, port, udp = target['host'], target['port'], target.get('protocol') == 'udp'
    family = socket.AF_INET6 if ':' in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM if udp else socket.SOCK_STREAM) as s:
        s.settimeout(4)
        try:
            if 'from' in target:
                s.bind((target['from'], 0))
            s.connect((host, port))
            if not udp:
                return True
            for _ in range(2):
                s.send(('probe-' + host).encode())
                s.settimeout(1)
                try:
                    return bool(s.recv(100))
                except socket.timeout:
                    continue
            return False
        except OSError:
            return False

targets = json.load(open(sys.argv[1]))
# All at once, because a dropped packet shows only by the timeout.
with concurrent.futures.ThreadPoolExecutor(max(len(targets), 1)) as pool:
    print(json.dumps(list(pool.map(probe, targets))))
`;

/** Uploads the probe to a sandbox. */
export async function installProbe(sandbox: TestSandbox): Promise<void> {
  await sandbox.account.client.sandboxes.files.write(sandbox.id, '/root/probe.py', PROBE);
}

/** Tries to reach each target from inside a sandbox, and returns the names of the targets that answered. */
export async function reached(
  sandbox: TestSandbox,
  targets: readonly Target[],
  prepare = 'true',
): Promise<string[]> {
  const { files } = sandbox.account.client.sandboxes;
  await files.write(sandbox.id, '/root/targets.json', JSON.stringify(targets));
  const output = await sandbox.run(`${prepare} && python3 /root/probe.py /root/targets.json`);
  const outcomes = JSON.parse(output.split('\n').at(-1) ?? '[]') as boolean[];
  return targets.filter((_, n) => outcomes[n]).map(nameOf);
}

/** Name of a target, such as `tcp host:port`. */
export function nameOf({ protocol = 'tcp', host, port, from }: Target): string {
  return `${protocol} ${from === undefined ? '' : `${from} > `}${host}:${port}`;
}
