import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { orIfAbsent } from '@svc/service-driver';
import { type InstanceNames, ownerOf } from './instance.ts';
import { processesOf } from './processes.ts';

const run = promisify(execFile);
const COMMAND_MS = 20_000;
const CGROUPS = ['', 'cpu/', 'memory/', 'pids/'].map((tree) => `/sys/fs/cgroup/${tree}`);

/** The resources of the machine that a service holds, by kind. Each entry names one. */
export interface Footprint {
  readonly vms: string[];
  readonly processes: string[];
  readonly namespaces: string[];
  readonly interfaces: string[];
  readonly addresses: string[];
  readonly mounts: string[];
  readonly cgroups: string[];
  readonly tables: string[];
  readonly runtimeFiles: string[];
  readonly sockets: string[];
  /** Ports on which the service's processes listen. */
  readonly ports: string[];
  readonly vmDirectories: string[];
  readonly temporaryFiles: string[];
}

/** Lists the resources of the machine that a service holds now. */
export async function footprintOf(instance: InstanceNames): Promise<Footprint> {
  const { name, runDir, dataDir } = instance;
  const processes = await processesOf(instance);
  const label = (of: (typeof processes)[number]) => `${of.pid} ${of.command.slice(0, 160)}`;
  const files = await orIfAbsent(readdir(dataDir), []);
  return {
    vms: processes.filter(({ kind }) => kind === 'vm').map(label),
    processes: processes.filter(({ kind }) => kind !== 'vm').map(label),
    namespaces: (await orIfAbsent(readdir('/run/netns'), [])).filter(startsWith(`${name}-`)),
    interfaces: (await interfaceNames()).filter(startsWith(`${name}-`)),
    addresses: await addressesOf(instance),
    mounts: (await mountPoints()).filter(
      (point) => point.startsWith(`${runDir}/`) || point.startsWith(`${dataDir}/`),
    ),
    cgroups: await cgroupsOf(name),
    tables: (await output('nft', ['list', 'tables'])).filter((line) =>
      [`table inet ${name}`, `table inet ${name}_connections`].includes(line),
    ),
    runtimeFiles: await runtimeFiles(instance),
    sockets: await socketsOf(instance),
    ports: await portsOf(processes.map(({ pid }) => pid)),
    vmDirectories: await orIfAbsent(readdir(`${dataDir}/vms`), []),
    temporaryFiles: files.filter((file) => file.endsWith('.tmp')),
  };
}

/**
 * Lists the resources that an ended service has left behind. When another service has been given the instance
 * number in the meantime, only resources that belong to the data directory count.
 */
export async function leftoversOf(instance: InstanceNames): Promise<string[]> {
  const footprint = await footprintOf(instance);
  const owner = await ownerOf(instance.index);
  const taken = owner !== undefined && owner !== instance.dataDir;
  const ofDataDir: readonly (keyof Footprint)[] = ['processes', 'vmDirectories', 'temporaryFiles'];
  const kinds = Object.entries(footprint).filter(
    ([kind]) => !taken || ofDataDir.includes(kind as keyof Footprint),
  );
  return kinds.flatMap(([kind, names]) => names.map((name: string) => `${kind}: ${name}`));
}

function startsWith(prefix: string): (text: string) => boolean {
  return (text) => text.startsWith(prefix);
}

async function interfaceNames(): Promise<string[]> {
  const devices = await readFile('/proc/net/dev', 'utf8');
  return devices.split('\n').flatMap((line) => /^\s*([^\s:]+):/.exec(line)?.[1] ?? []);
}

/** Addresses and routes of this machine inside the service's address block. */
async function addressesOf({ addresses }: InstanceNames): Promise<string[]> {
  const first = addresses.replace(/\.0\/20$/, '.');
  const [assigned, routes] = await Promise.all([
    output('ip', ['-o', '-4', 'addr', 'show', 'dev', 'lo']),
    output('ip', ['-4', 'route', 'show']),
  ]);
  return [
    ...assigned.filter((line) => line.includes(` ${first}1/32 `)),
    ...routes.filter((line) => line.includes(addresses)),
  ];
}

async function mountPoints(): Promise<string[]> {
  const mounts = await readFile('/proc/self/mountinfo', 'utf8');
  return mounts.split('\n').flatMap((line) => line.split(' ')[4] ?? []);
}

async function cgroupsOf(name: string): Promise<string[]> {
  const groups: string[] = [];
  const parents = CGROUPS.flatMap((tree) => [`${tree}${name}`, `${tree}${name}-service`]);
  for (const parent of parents) {
    const entries = await orIfAbsent(readdir(parent, { withFileTypes: true }), undefined);
    if (entries === undefined) continue;
    const children = entries.filter((entry) => entry.isDirectory());
    groups.push(parent, ...children.map((child) => `${parent}/${child.name}`));
  }
  return groups;
}

async function runtimeFiles({
  runDir,
  databaseDir,
  index,
  dataDir,
}: InstanceNames): Promise<string[]> {
  const found: string[] = [];
  for (const directory of [runDir, databaseDir]) {
    if (directory === undefined) continue;
    if ((await orIfAbsent(readdir(directory), undefined)) !== undefined) found.push(directory);
  }
  if ((await ownerOf(index)) === dataDir) found.push(`/run/svc/instances/${index}`);
  return found;
}

/** Unix sockets in the service's directories. */
async function socketsOf({ runDir, databaseDir, dataDir }: InstanceNames): Promise<string[]> {
  const sockets = await readFile('/proc/net/unix', 'utf8');
  const places = [runDir, databaseDir, dataDir].filter((place) => place !== undefined);
  return sockets
    .split('\n')
    .map((line) => line.split(/\s+/)[7] ?? '')
    .filter((path) => places.some((place) => path.startsWith(`${place}/`)));
}

async function portsOf(pids: readonly number[]): Promise<string[]> {
  const listening = await output('ss', ['-H', '-l', '-t', '-u', '-n', '-p']);
  const marks = pids.map((pid) => `pid=${pid},`);
  return listening.filter((line) => marks.some((mark) => line.includes(mark)));
}

async function output(program: string, words: readonly string[]): Promise<string[]> {
  const { stdout } = await run(program, words, { timeout: COMMAND_MS, maxBuffer: 1 << 24 });
  return stdout.split('\n').map((line) => line.trim());
}
