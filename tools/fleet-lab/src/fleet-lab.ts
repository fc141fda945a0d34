import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ComponentKind } from '@svc/contract';
import { type ModelServer, type Script, startModelServer } from '@svc/model-server';
import { SvcClient } from '@svc/sdk';
import { callersEnvironment, mailedCode } from '@svc/service-driver';
import { Secret } from '@svc/service-kit/secret';
import { BUILT_IMAGES } from '@svc/service-kit/testing';
import { ensureLocalTls, type LocalTls } from '@svc/service-kit/tls';
import { deriveControlPlaneKey, mintEnrolmentToken } from '@svc/service-kit/tokens';
import { type BackingServices, startBackingServices } from './backing-services.ts';
import { HaProxy } from './haproxy.ts';
import { LabDisk } from './lab-disk.ts';
import { type LabMachine, LabNetwork } from './lab-network.ts';
import { type Component, Piece } from './piece.ts';

const API_PORT = 8443;
const SESSIONS_PORT = 8444;
const INTERNAL_PORT = 8445;
const WORKER_PORT = 9444;
/** Longer than any lab lasts. */
const TOKEN_SECONDS = 6 * 3_600;

type Settings = Readonly<Record<string, string | undefined>>;

/** How many of each component run. */
export interface FleetSize {
  readonly controlPlanes: number;
  readonly runtimeHosts: number;
  readonly workers: number;
  /** Whether PostgreSQL has a synchronous standby. Default: none. */
  readonly hasStandby?: boolean;
  /** Whether the load balancer tells the components the addresses of clients by the PROXY protocol. Default: yes. */
  readonly usesProxyProtocol?: boolean;
  /** The size of a disk of its own for the data of each worker, in MiB. Default: all use that of this machine. */
  readonly workerDiskMib?: number;
}

/**
 * A whole fleet on one machine: each component of svc in a process and a network namespace of its own, with a real
 * PostgreSQL, a real S3 server, and HAProxy in front. Everything is gone when it is disposed of.
 */
export class FleetLab implements AsyncDisposable {
  readonly network: LabNetwork;
  readonly backing: BackingServices;
  readonly model: ModelServer;
  readonly controlPlanes: readonly Piece[];
  readonly runtimeHosts: readonly Piece[];
  readonly workers: readonly Piece[];
  readonly #disks: ReadonlyMap<string, LabDisk>;
  readonly #balancer: HaProxy;
  readonly #foundation: Foundation;
  readonly #cleanUp: AsyncDisposableStack;
  #accounts = 0;

  private constructor(foundation: Foundation, pieces: Pieces, cleanUp: AsyncDisposableStack) {
    this.network = foundation.network;
    this.backing = foundation.backing;
    this.model = foundation.model;
    this.controlPlanes = pieces.controlPlanes;
    this.runtimeHosts = pieces.runtimeHosts;
    this.workers = pieces.workers;
    this.#disks = pieces.disks;
    this.#balancer = pieces.balancer;
    this.#foundation = foundation;
    this.#cleanUp = cleanUp;
  }

  /** Starts all, and waits until every component is ready. */
  static async start(size: FleetSize, script: Script): Promise<FleetLab> {
    await using cleanUp = new AsyncDisposableStack();
    const foundation = await layFoundation(script, size, cleanUp);
    const pieces = await startPieces(foundation, size, cleanUp);
    return new FleetLab(foundation, pieces, cleanUp.move());
  }

  /** Adds a worker on a machine of its own, which the caller starts. It is ended with the lab. */
  async addWorker(name: string, settings: Settings): Promise<Piece> {
    const machine = await this.network.addMachine(name);
    const { directory, settings: common } = this.#foundation;
    const env = { ...common, ...(await workerSettings(machine, this.#foundation)), ...settings };
    return this.#cleanUp.use(new Piece('worker', machine, { directory, env }));
  }

  /** A directory that is removed with the lab. */
  get directory(): string {
    return this.#foundation.directory;
  }

  /** Where customers reach it, and the certificate authority that they trust. */
  get address(): { readonly baseUrl: string; readonly ca: string } {
    const { url: baseUrl, tls } = this.#foundation;
    return { baseUrl, ca: tls.ca };
  }

  /** Signs an account up, with a bundle `llm` that names the scripted model, and returns its client. */
  async signUp(): Promise<SvcClient> {
    const { url, tls, model } = this.#foundation;
    const email = `user${++this.#accounts}@example.com`;
    const visitor = new SvcClient({ baseUrl: url, ca: tls.ca });
    try {
      await visitor.tenants.requestCode(email);
      const code = await this.#mailedCode(email);
      const { api_key: apiKey } = await visitor.tenants.verify(email, code);
      const client = new SvcClient({ baseUrl: url, ca: tls.ca, apiKey });
      this.#cleanUp.defer(() => client.close());
      await client.secrets.create('llm', { LLM_API_KEY: 'key', LLM_BASE_URL: model.url });
      return client;
    } finally {
      await visitor.close();
    }
  }

  /** Waits until the load balancer uses a piece that has started again. Workers are not behind it. */
  untilBalanced({ machine }: Piece): Promise<void> {
    return this.#balancer.untilUsed(machine.address);
  }

  /** The disk of a worker. @throws Error when the workers of this lab have none of their own */
  diskOf({ machine }: Piece): LabDisk {
    const disk = this.#disks.get(machine.name);
    if (disk === undefined) throw new Error(`${machine.name} has no disk of its own`);
    return disk;
  }

  /** The worker that has the VM of a sandbox. @throws Error when none has */
  async workerOf(vmId: string): Promise<Piece> {
    for (const worker of this.workers) {
      if ((await worker.sandboxes()).includes(vmId)) return worker;
    }
    throw new Error(`no worker has ${vmId}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.network.heal();
    await this.#cleanUp.disposeAsync();
  }

  /** Either control plane may have sent it. */
  async #mailedCode(email: string): Promise<string> {
    for (const { dataDir } of this.controlPlanes) {
      const code = await mailedCode(dataDir, email).catch(() => undefined);
      if (code !== undefined) return code;
    }
    throw new Error(`no code for ${email}`);
  }
}

/** What the components need, and are told of. */
interface Foundation {
  readonly directory: string;
  readonly network: LabNetwork;
  readonly backing: BackingServices;
  readonly model: ModelServer;
  /** The machine of the load balancer. */
  readonly front: LabMachine;
  /** Public URL of the control planes. */
  readonly url: string;
  /** Their URL for workers and runtime hosts. */
  readonly internalUrl: string;
  readonly tls: LocalTls;
  /** Settings of every component. */
  readonly settings: Settings;
  /** That of the control planes. */
  readonly secret: string;
}

/** A token with which one component enrols. */
async function enrolmentToken(secret: string, kind: ComponentKind): Promise<string> {
  const key = await deriveControlPlaneKey(new Secret(secret));
  return mintEnrolmentToken(key, { kind, uses: 1 }, TOKEN_SECONDS);
}

async function layFoundation(
  script: Script,
  { hasStandby = false, usesProxyProtocol = true }: FleetSize,
  cleanUp: AsyncDisposableStack,
): Promise<Foundation> {
  const directory = await mkdtemp(join(tmpdir(), 'svc-fleet-lab-'));
  cleanUp.defer(() => rm(directory, { recursive: true, force: true }));
  const network = cleanUp.use(await LabNetwork.open());
  const front = await network.addMachine('front');
  const backing = await startBackingServices(network, directory, { hasStandby, cleanUp });
  const tls = await ensureLocalTls({
    directory: join(directory, 'tls'),
    extraNames: [front.address, network.ownAddress],
  });
  const model = await startModelServer({ script, host: network.ownAddress, tls });
  cleanUp.defer(() => model.close());
  const settings = {
    ...callersEnvironment(),
    HOME: directory,
    SVC_MASTER_KEY: randomBytes(32).toString('hex'),
    SVC_CA_FILE: tls.caFile,
    SVC_EGRESS_ALLOW_HOSTS: network.ownAddress,
    SVC_EGRESS_CA_FILE: tls.caFile,
    ...(usesProxyProtocol ? { SVC_PROXY_PROTOCOL: front.address } : {}),
    SVC_TLS_CERT_FILE: join(directory, 'tls/server.pem'),
    SVC_TLS_KEY_FILE: join(directory, 'tls/server-key.pem'),
  };
  const url = `https://${front.address}:${API_PORT}`;
  const internalUrl = `https://${front.address}:${INTERNAL_PORT}`;
  const secret = randomBytes(32).toString('hex');
  return { directory, network, backing, model, front, url, internalUrl, tls, settings, secret };
}

interface Pieces {
  readonly controlPlanes: readonly Piece[];
  readonly runtimeHosts: readonly Piece[];
  readonly workers: readonly Piece[];
  /** Of workers, by the names of their machines. */
  readonly disks: ReadonlyMap<string, LabDisk>;
  readonly balancer: HaProxy;
}

async function workerSettings(
  { name, address }: LabMachine,
  { internalUrl, secret }: Pick<Foundation, 'internalUrl' | 'secret'>,
): Promise<Settings> {
  return {
    SVC_CONTROL_PLANE_URL: internalUrl,
    SVC_ENROLMENT_TOKEN: await enrolmentToken(secret, 'worker'),
    SVC_WORKER_ID: name,
    SVC_WORKER_LISTEN: `${address}:${WORKER_PORT}`,
    SVC_IMAGE_DIR: BUILT_IMAGES,
    SVC_POOL: 'standard=0',
  };
}

async function startPieces(
  foundation: Foundation,
  size: FleetSize,
  cleanUp: AsyncDisposableStack,
): Promise<Pieces> {
  const { network, directory, settings, backing, front, url, internalUrl, secret } = foundation;
  const build = async (
    component: Component,
    count: number,
    settingsOf: (machine: LabMachine) => Promise<Settings>,
  ) => {
    const pieces: Piece[] = [];
    while (pieces.length < count) {
      const machine = await network.addMachine(`${component}-${pieces.length + 1}`);
      const env = { ...settings, ...(await settingsOf(machine)) };
      pieces.push(cleanUp.use(new Piece(component, machine, { directory, env })));
    }
    return pieces;
  };
  const controlPlanes = await build('control-plane', size.controlPlanes, async ({ address }) => ({
    ...backing.settings,
    SVC_CLUSTER_SECRET: secret,
    SVC_LISTEN: `${address}:${API_PORT}`,
    SVC_INTERNAL_LISTEN: `${address}:${INTERNAL_PORT}`,
    SVC_BASE_URL: url,
    SVC_RUNTIME_URL: `wss://${front.address}:${SESSIONS_PORT}`,
  }));
  const runtimeHosts = await build('runtime', size.runtimeHosts, async ({ address }) => ({
    SVC_CONTROL_PLANE_URL: internalUrl,
    SVC_ENROLMENT_TOKEN: await enrolmentToken(secret, 'runtime'),
    SVC_RUNTIME_LISTEN: `${address}:${SESSIONS_PORT}`,
  }));
  const disks = new Map<string, LabDisk>();
  const workers = await build('worker', size.workers, async (machine) => {
    if (size.workerDiskMib !== undefined) {
      const disk = await LabDisk.mount(join(directory, machine.name), size.workerDiskMib);
      disks.set(machine.name, cleanUp.use(disk));
    }
    return workerSettings(machine, foundation);
  });
  const frontend = (port: number, pieces: readonly Piece[]) => ({
    bind: `${front.address}:${port}`,
    servers: pieces.map(({ machine }) => `${machine.address}:${port}`),
    hasComponents: true,
    sendsProxyHeaders: size.usesProxyProtocol ?? true,
  });
  const frontends = [
    frontend(API_PORT, controlPlanes),
    frontend(INTERNAL_PORT, controlPlanes),
    frontend(SESSIONS_PORT, runtimeHosts),
  ];
  const { name, launcher } = front;
  const balancer = cleanUp.use(await HaProxy.start({ name, directory, launcher, frontends }));
  for (const piece of [...controlPlanes, ...runtimeHosts, ...workers]) await piece.start();
  return { controlPlanes, runtimeHosts, workers, disks, balancer };
}
