import type { TestSandbox } from '../../support/use-sandbox.ts';

/** One thing to reach: TCP unless told. */
export interface Target {
  readonly host: string;
  readonly port: number;
  readonly protocol?: 'tcp' | 'udp';
  /** Address to come from. */
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
with concurrent.futures.ThreadPoolExecutor(16) as pool:
    print(json.dumps(list(pool.map(probe, targets))))
`;

/** Puts the prober into a sandbox. */
export async function installProbe(sandbox: TestSandbox): Promise<void> {
  await sandbox.account.client.sandboxes.files.write(sandbox.id, '/root/probe.py', PROBE);
}

/** Tries from inside a sandbox to reach each target; what it reached, as `tcp host:port`. */
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

/** A target as {@link reached} names it. */
export function nameOf({ protocol = 'tcp', host, port, from }: Target): string {
  return `${protocol} ${from === undefined ? '' : `${from} > `}${host}:${port}`;
}
