import { until } from '@svc/service-driver';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ALLOWED, FORBIDDEN, IPV6 } from '../../test/network/address-ranges.ts';
import { APT_PACKAGE, buildAptRepository } from '../../test/network/apt-repository.ts';
import { NETWORK } from '../../test/network/network-addresses.ts';
import {
  installProbe,
  nameOf,
  reached,
  type Target,
} from '../../test/network/reachability-probe.ts';
import {
  type SimulatedNetworkService,
  startOnSimulatedNetwork,
} from '../../test/network/simulated-network-service.ts';
import { TestSandbox } from '../../test/test-sandbox.ts';

const ZONE = {
  'public.example': [[NETWORK.public]],
  'packages.example': [[NETWORK.public]],
  'private.example': [['10.0.0.1']],
  'metadata.example': [['169.254.169.254']],
  'loopback.example': [['127.0.0.1']],
  'cgnat.example': [['100.64.0.1']],
  'mixed.example': [[NETWORK.public, '192.168.1.1']],
  'six.example': [['fd00::1', '::1', '::ffff:10.0.0.1', NETWORK.public6]],
  'rebinding.example': [[NETWORK.public], ['10.0.0.1'], ['169.254.169.254']],
};
const GATEWAY = '172.30.0.1';
const VM_TEST_MS = 600_000;
/** How long a page waits for an answer, on an emulated processor. */
const PAGE_MS = 15_000;

let service: SimulatedNetworkService;
let attacker: TestSandbox;
let neighbour: TestSandbox;

beforeAll(async () => {
  service = await startOnSimulatedNetwork(ZONE, ['standard', 'browser']);
  const create = async () => TestSandbox.create(await service.access.signUp());
  [attacker, neighbour] = await Promise.all([create(), create()]);
  await installProbe(attacker);
  await neighbour.run(
    `nohup python3 -m http.server ${NETWORK.hostPort} --bind 0.0.0.0 >/dev/null 2>&1 &`,
  );
});
afterAll(() => service?.[Symbol.asyncDispose]());

const at = (hosts: readonly string[], port: number, protocol: 'tcp' | 'udp' = 'tcp'): Target[] =>
  hosts.map((host) => ({ host, port, protocol }));
const hostOf = (sandbox: TestSandbox) => (sandbox.endpoint ?? '').replace(/:\d+$/, '');
/** The host's address on a sandbox's link. */
const hostSideOf = (address: string) => address.replace(/\d+$/, (last) => String(Number(last) ^ 1));

describe('from inside a sandbox', () => {
  test('apt installs packages from a public repository, for the user agent with sudo', async () => {
    await using repository = await buildAptRepository();
    const { internet } = service.network;
    const files = { port: NETWORK.packagesPort, directory: repository.directory };
    await service.network.startPeer(internet, { files });
    const asAgent = (command: string) => neighbour.run(`su --login agent -c "${command}"`);
    const asked = await asAgent('sudo -n apt-get update --print-uris');
    for (const suite of ['debian/dists/trixie', 'debian-security/dists/trixie-security']) {
      expect(asked).toContain(`'http://deb.debian.org/${suite}/InRelease'`);
    }
    const source = `deb [trusted=yes] http://packages.example:${NETWORK.packagesPort}/ ./`;
    await neighbour.run(`echo '${source}' >/etc/apt/sources.list`);
    const done = await asAgent(
      `sudo -n apt-get update && sudo -n apt-get install --yes ${APT_PACKAGE.name}`,
    );
    // Warnings and errors, such as one about the user that downloads.
    expect(done).not.toMatch(/^[WE]: /m);
    expect(await asAgent(APT_PACKAGE.name)).toBe(APT_PACKAGE.greeting);
  });

  test('public addresses are reachable, from the host’s address', async () => {
    const targets = [
      ...at(ALLOWED, NETWORK.tcpPort),
      ...at([NETWORK.public], NETWORK.udpPort, 'udp'),
    ];
    await expect.poll(() => reached(attacker, targets)).toEqual(targets.map(nameOf));
    // A connection is established before the listener sees it.
    await expect
      .poll(() => service.internet.arrivals())
      .toEqual(
        expect.arrayContaining(ALLOWED.map((address) => `tcp ${NETWORK.host} > ${address}`)),
      );
  });

  test('private, link-local, carrier-grade NAT and metadata addresses are unreachable', async () => {
    const targets = [...at(FORBIDDEN, NETWORK.tcpPort), ...at(FORBIDDEN, NETWORK.udpPort, 'udp')];
    expect(await reached(attacker, targets)).toEqual([]);
    const arrivals = await service.internet.arrivals();
    const allowed = new Set<string>(ALLOWED);
    const leaked = arrivals.filter((one) => !allowed.has(one.replace(/^.* > (probe-)?/, '')));
    expect(leaked).toEqual([]);
  });

  test('no port of the host is reachable at any of its addresses', async () => {
    const ports = [...service.ports, NETWORK.hostPort, 22];
    // The ports are open and reachable from the internet.
    for (const port of [service.ports[0] ?? 0, NETWORK.hostPort]) {
      expect(await service.internet.connect(NETWORK.host, port)).toBe('connected');
    }
    const own = hostOf(attacker);
    const addresses = [GATEWAY, NETWORK.host, hostSideOf(own), hostSideOf(hostOf(neighbour))];
    expect(
      await reached(
        attacker,
        ports.flatMap((port) => at(addresses, port)),
      ),
    ).toEqual([]);
  });

  test('the host’s loopback is unreachable through the gateway', async () => {
    const reroute = [
      'sysctl -q -w net.ipv4.conf.all.route_localnet=1 net.ipv4.conf.eth0.route_localnet=1',
      'ip addr add 127.9.9.9/32 dev eth0',
      'ip route del local 127.0.0.0/8 table local',
      `ip route add 127.0.0.0/8 via ${GATEWAY}`,
    ].join('; ');
    const targets = [...service.ports, NETWORK.hostPort].flatMap((port) => at(['127.0.0.2'], port));
    expect(await reached(attacker, targets, `(${reroute}; true)`)).toEqual([]);
  });

  test('another sandbox is unreachable at every port', async () => {
    const address = hostOf(neighbour);
    // The host itself can reach it.
    expect(await service.host.connect(address, neighbour.hostPort)).toBe('connected');
    const request = `curl -s -o /dev/null -w '%{http_code}' localhost:${NETWORK.hostPort}`;
    // The server may still be starting.
    await expect.poll(async () => (await neighbour.exec(request)).output).toBe('200');
    const ports = [22, 7000, NETWORK.hostPort, neighbour.hostPort];
    const targets = ports.flatMap((port) => at([address, hostOf(attacker)], port));
    expect(await reached(attacker, targets)).toEqual([]);
  });

  test('no IPv6 address is reachable, even when the guest enables IPv6', async () => {
    const enable = [
      'sysctl -q -w net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.eth0.disable_ipv6=0',
      'ip -6 addr add 2a02:2f0::77/64 dev eth0 nodad',
      'ip -6 addr add fd00::77/64 dev eth0 nodad',
      'ip -6 neigh replace fe80::1 lladdr 02:00:00:00:00:01 dev eth0 nud permanent',
      'ip -6 route replace default via fe80::1 dev eth0 onlink',
    ].join('; ');
    if (service.network.hasIpv6) {
      expect(await service.host.connect(NETWORK.public6, NETWORK.tcpPort)).toBe('connected');
    }
    const targets = [...IPV6, NETWORK.host6].flatMap((host) => [
      { host, port: NETWORK.tcpPort },
      { host, port: NETWORK.hostPort },
      { host, port: NETWORK.udpPort, protocol: 'udp' as const },
    ]);
    expect(await reached(attacker, targets, `(${enable}; true)`)).toEqual([]);
    const arrivals = await service.internet.arrivals();
    expect(
      arrivals.filter((one) => one.includes('2a02:2f0::77') || one.includes('fd00::77')),
    ).toEqual([]);
  });
});

describe('names', () => {
  const RESOLVE = `import json, socket, sys
def addresses(name):
    try:
        return sorted({found[4][0] for found in socket.getaddrinfo(name, 80)})
    except OSError:
        return []
print(json.dumps([addresses(name) for name in sys.argv[1:]]))`;

  /** Resolves names inside the sandbox, one after the other. */
  const resolve = async (...names: string[]): Promise<string[][]> => {
    const env = { PROGRAM: RESOLVE };
    const command = `python3 -c "$PROGRAM" ${names.join(' ')}`;
    return JSON.parse((await attacker.exec({ command, env })).output) as string[][];
  };

  test('with public addresses resolve and are reachable', async () => {
    expect(await resolve('public.example')).toEqual([[NETWORK.public]]);
    const url = `http://public.example:${NETWORK.tcpPort}/`;
    expect(await attacker.run(`curl -s --http0.9 --max-time 20 ${url}`)).toContain(NETWORK.public);
  });

  test('with private, metadata, loopback or carrier-grade NAT addresses resolve to nothing', async () => {
    const names = ['private', 'metadata', 'loopback', 'cgnat'].map((name) => `${name}.example`);
    expect(await resolve(...names)).toEqual([[], [], [], []]);
  });

  test('with mixed addresses resolve to the public ones', async () => {
    const [mixed, six = []] = await resolve('mixed.example', 'six.example');
    expect(mixed).toEqual([NETWORK.public]);
    for (const address of six) expect(address).toBe(NETWORK.public6);
  });

  test('that change their answer never resolve to a private address', async () => {
    const rounds = await resolve(...Array.from({ length: 4 }, () => 'rebinding.example'));
    expect(rounds[0]).toEqual([NETWORK.public]);
    for (const address of rounds.flat()) expect(address).toBe(NETWORK.public);
  });
});

describe('from a page of the browser in a sandbox', () => {
  const SITE = 'http://127.0.0.1:8000/';
  const GATEWAY_PORT = 7200;
  let sandbox: TestSandbox;

  beforeAll(async () => {
    // The gateway of the models answers only sandboxes with an agent.
    const agent = { agent: 'deictic', llm_key: 'sk-e2e', model: 'claude-sonnet-4-5' } as const;
    sandbox = await TestSandbox.create(attacker.account, { template: 'browser', ...agent });
    await sandbox.run(
      `cd /tmp && nohup python3 -m http.server 8000 --bind 127.0.0.1 >/dev/null 2>&1 & until curl -sf ${SITE} >/dev/null; do sleep 0.2; done`,
    );
  }, VM_TEST_MS);
  afterAll(() => sandbox?.delete());

  /** The addresses that answer a page. It comes from the sandbox itself, since browsers trust such a page most. */
  async function answering(urls: readonly string[]): Promise<string[]> {
    const program = `
      const { chromium } = require('playwright-core');
      (async () => {
        const browser = await chromium.connectOverCDP('http://127.0.0.1:9222', { timeout: ${VM_TEST_MS} });
        const page = await browser.contexts()[0].newPage();
        page.setDefaultTimeout(${VM_TEST_MS});
        await page.goto('${SITE}');
        const answers = await page.evaluate((urls) => Promise.all(urls.map((url) =>
          fetch(url, { mode: 'no-cors', signal: AbortSignal.timeout(${PAGE_MS}) }).then(() => url, () => undefined))),
          ${JSON.stringify(urls)});
        console.log(JSON.stringify(answers.filter((url) => url !== undefined)));
        await page.close();
        process.exit(0);
      })();`;
    await sandbox.account.client.sandboxes.files.write(sandbox.id, '/root/fetch.cjs', program);
    return JSON.parse((await sandbox.run('node /root/fetch.cjs')).split('\n').at(-1) ?? '');
  }

  test(
    'public addresses and the sandbox itself answer',
    async () => {
      const urls = [`${SITE}own`, `http://${NETWORK.public}/`, 'http://public.example/'];
      expect(await answering(urls)).toEqual(urls);
      await expect
        .poll(() => service.internet.arrivals())
        .toContain(`tcp ${NETWORK.host} > ${NETWORK.public}`);
    },
    VM_TEST_MS,
  );

  test(
    'private, link-local, carrier-grade NAT and metadata addresses do not answer',
    async () => {
      // They have listeners, which the host reaches.
      const listening = ['10.0.0.1', '169.254.169.254', '192.168.1.1', '100.64.0.1'];
      for (const address of listening) {
        expect(await service.host.connect(address, NETWORK.tcpPort)).toBe('connected');
      }
      const fromHost = listening.map((address) => `tcp ${NETWORK.host} > ${address}`);
      await expect
        .poll(() => service.internet.arrivals())
        .toEqual(expect.arrayContaining(fromHost));
      const before = (await service.internet.arrivals()).length;
      const names = ['private', 'metadata', 'cgnat', 'mixed', 'rebinding'];
      const urls = [...FORBIDDEN, ...names.map((name) => `${name}.example`)];
      const answered = await answering(urls.map((host) => `http://${host}/`));
      const allowed = ['http://mixed.example/', 'http://rebinding.example/'];
      expect(answered.filter((url) => !allowed.includes(url))).toEqual([]);
      const arrived = (await service.internet.arrivals()).slice(before);
      expect(arrived.filter((one) => !one.endsWith(` > ${NETWORK.public}`))).toEqual([]);
    },
    VM_TEST_MS,
  );

  test(
    'the host, another sandbox and the gateway of the models do not answer',
    async () => {
      expect(await service.host.connect(hostOf(neighbour), neighbour.hostPort)).toBe('connected');
      const own = `curl -s -o /dev/null -w '%{http_code}' localhost:${NETWORK.hostPort}`;
      await expect.poll(async () => (await neighbour.exec(own)).output).toBe('200');
      // The programs of a sandbox reach the gateway, unlike its pages.
      const gateway = `curl -s -o /dev/null -w '%{http_code}' ${GATEWAY}:${GATEWAY_PORT}`;
      expect(await sandbox.run(gateway)).toMatch(/^[45]\d\d$/);
      const hosts = [GATEWAY, NETWORK.host, hostSideOf(hostOf(sandbox)), hostOf(neighbour)];
      const before = (await service.host.arrivals()).length;
      const urls = [
        ...hosts.map((host) => `http://${host}:${NETWORK.hostPort}/`),
        `http://${GATEWAY}:${GATEWAY_PORT}/`,
        `http://[::ffff:${GATEWAY}]:${GATEWAY_PORT}/`,
      ];
      expect(await answering(urls)).toEqual([]);
      expect((await service.host.arrivals()).slice(before)).toEqual([]);
    },
    VM_TEST_MS,
  );
});

describe('a changed identity', () => {
  test('packets with a forged source address are dropped', async () => {
    const program = `import socket, struct, sys
def packet(source, destination, text):
    payload = text.encode()
    udp = struct.pack('!HHHH', 5000, ${NETWORK.udpPort}, 8 + len(payload), 0) + payload
    header = struct.pack('!BBHHHBBH4s4s', 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0, socket.inet_aton(source), socket.inet_aton(destination))
    return header + udp
with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as s:
    for source in sys.argv[1:]:
        s.sendto(packet(source, '${NETWORK.public}', 'forged-' + source), ('${NETWORK.public}', 0))
    s.sendto(packet('172.30.0.2', '${NETWORK.public}', 'honest'), ('${NETWORK.public}', 0))`;
    const sources = [
      hostOf(neighbour),
      GATEWAY,
      '172.30.0.3',
      NETWORK.host,
      '8.8.8.8',
      '10.1.2.3',
      '127.0.0.1',
    ];
    await attacker.exec({
      command: `python3 -c "$PROGRAM" ${sources.join(' ')}`,
      env: { PROGRAM: program },
    });
    const arrivals = await until('the honest packet arrives', async () => {
      const seen = await service.internet.arrivals();
      return seen.includes(`udp ${NETWORK.host} > honest`) && seen;
    });
    expect(arrivals.filter((one) => one.includes('forged'))).toEqual([]);
  });

  test('nothing is reachable from another source address', async () => {
    const others = ['172.30.0.9', '10.9.9.9', '93.184.215.77'];
    const add = others.map((address) => `ip addr add ${address}/32 dev eth0`).join('; ');
    const targets = others.map((from) => ({ host: NETWORK.public, port: NETWORK.tcpPort, from }));
    expect(await reached(attacker, targets, `(${add}; true)`)).toEqual([]);
    const own = at([NETWORK.public], NETWORK.tcpPort);
    await expect.poll(() => reached(attacker, own)).toHaveLength(1);
  });

  test.each(['02:00:00:00:00:77', '02:00:00:00:00:01'])(
    'nothing is reachable with the MAC address %s',
    async (mac) => {
      const { files } = attacker.account.client.sandboxes;
      const targets = at([NETWORK.public], NETWORK.tcpPort);
      await files.write(attacker.id, '/root/mac.json', JSON.stringify(targets));
      // This cuts the command's own connection too, so the script runs in the background and restores the address.
      const script = `ip link set eth0 address ${mac} && python3 /root/probe.py /root/mac.json > /root/mac.new; ip link set eth0 address 02:00:00:00:00:02; mv /root/mac.new /root/mac.result`;
      await attacker.run('rm -f /root/mac.result');
      await attacker.exec({
        command: 'nohup setsid sh -c "$SCRIPT" >/dev/null 2>&1 &',
        env: { SCRIPT: script },
      });
      const result = await until('the sandbox is reachable again', async () => {
        const answer = await attacker
          .exec('cat /root/mac.result', { timeoutMs: 15_000 })
          .catch(() => undefined);
        return answer?.exit_code === 0 && answer.output;
      });
      expect(JSON.parse(result)).toEqual([false]);
      await expect.poll(() => reached(attacker, targets)).toHaveLength(1);
    },
  );
});

test('the neighbour still answers afterwards', async () => {
  expect(await neighbour.run('echo fine')).toBe('fine');
});
