/** The configuration of the service: the environment, read once at start. */

import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import type { ListenAddress } from './kinds.ts';
import { type Environment, readTable, type ValuesOf } from './read.ts';
import { unreadVariables } from './unread.ts';
import { LIMIT_VARIABLES, VARIABLES } from './variables.ts';

const LAST_PORT = 65_535;

/** The settings of the S3 server, of which all are set, or none. */
const S3_VARIABLES = [
  's3Endpoint',
  's3Region',
  's3Bucket',
  's3AccessKeyId',
  's3SecretAccessKey',
] as const satisfies (keyof typeof VARIABLES)[];

type Values = ValuesOf<typeof VARIABLES>;

export interface Config extends Omit<Values, 'dataDir' | 'imageDir' | 'runtimeListen'> {
  /** Absolute. */
  readonly dataDir: string;
  /** Absolute. */
  readonly imageDir: string;
  readonly runtimeListen: ListenAddress;
  readonly limits: ValuesOf<typeof LIMIT_VARIABLES>;
}

/** The environment is invalid. The message lists every problem. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(
      `The configuration has ${problems.length} problem(s):\n${problems.map((p) => `  - ${p}`).join('\n')}`,
    );
    this.problems = problems;
  }
}

/**
 * Reads and checks every variable, for a command that uses or inspects a service. Such a command ignores variables that
 * nothing reads, so that it works in the environment of a service of another version.
 * @throws ConfigError naming every problem at once
 */
export function loadConfig(environment: Environment = process.env): Config {
  return read(environment, []);
}

/**
 * Reads and checks every variable, for the start of a service. A variable with the service's prefix that nothing reads
 * is a problem too: whoever set it would believe that it has an effect.
 * @throws ConfigError naming every problem at once
 */
export function loadServiceConfig(environment: Environment = process.env): Config {
  return read(environment, unreadVariables(environment));
}

function read(environment: Environment, unread: readonly string[]): Config {
  const problems: string[] = [];
  const values = readTable(VARIABLES, environment, problems);
  const limits = readTable(LIMIT_VARIABLES, environment, problems);
  problems.push(...conflictsOf(values), ...unread);
  if (problems.length > 0) throw new ConfigError(problems);
  return {
    ...values,
    dataDir: values.dataDir ?? userDirectory(environment, 'XDG_DATA_HOME', '.local/share', 'svc'),
    imageDir:
      values.imageDir ?? userDirectory(environment, 'XDG_CACHE_HOME', '.cache', 'svc/images'),
    runtimeListen: values.runtimeListen ?? besides(values.listen),
    limits,
  };
}

/** Hosts to listen on that are reached as `localhost` from this machine. */
const LOCAL_HOSTS: readonly string[] = ['localhost', '127.0.0.1', '::1', '0.0.0.0', '::'];

/** The public URL of a listener: the configured one, or that of its address with the bound port. */
export function publicUrl(
  configured: string | undefined,
  secureScheme: 'https' | 'wss',
  config: Pick<Config, 'tls'>,
  { host, port }: ListenAddress,
): string {
  if (configured !== undefined) return configured;
  const scheme = config.tls ? secureScheme : secureScheme.slice(0, -1);
  return `${scheme}://${hostInUrl(host)}:${port}`;
}

/** The names and addresses in the URLs of the listeners that are not those of every machine. */
export function listenNames(
  config: Pick<Config, 'listen' | 'internalListen' | 'runtimeListen'>,
): string[] {
  const { listen, internalListen, runtimeListen } = config;
  const hosts = [listen, internalListen, runtimeListen].flatMap((one) => one?.host ?? []);
  return hosts.filter((host) => !LOCAL_HOSTS.includes(host));
}

function hostInUrl(host: string): string {
  if (LOCAL_HOSTS.includes(host)) return 'localhost';
  return host.includes(':') ? `[${host}]` : host;
}

/** The next port, so that parallel services need only one address each. */
function besides({ host, port }: ListenAddress): ListenAddress {
  // Port 0 stays 0, and there is no port after the last one.
  if (port === 0) return { host, port };
  return { host, port: port < LAST_PORT ? port + 1 : port - 1 };
}

/** Rules between variables. */
function conflictsOf(values: Values): string[] {
  const conflicts: string[] = [];
  if ((values.tlsCertFile === undefined) !== (values.tlsKeyFile === undefined)) {
    conflicts.push('SVC_TLS_CERT_FILE and SVC_TLS_KEY_FILE must be set together');
  }
  if (values.tls === false && values.tlsCertFile !== undefined) {
    conflicts.push('SVC_TLS=off and SVC_TLS_CERT_FILE contradict each other');
  }
  if (values.clusterSecret !== undefined && values.clusterSecretFile !== undefined) {
    conflicts.push('SVC_CLUSTER_SECRET and SVC_CLUSTER_SECRET_FILE exclude each other');
  }
  if (values.masterKey !== undefined && values.masterKeyFile !== undefined) {
    conflicts.push('SVC_MASTER_KEY and SVC_MASTER_KEY_FILE exclude each other');
  }
  if ((values.stripeSecretKey === undefined) !== (values.stripeWebhookSecret === undefined)) {
    conflicts.push('SVC_STRIPE_SECRET_KEY and SVC_STRIPE_WEBHOOK_SECRET must be set together');
  }
  if (values.imageSource !== undefined && values.imageSource !== 'build') {
    if (values.imageTrustedKeys?.length === 0) {
      conflicts.push('SVC_IMAGE_SOURCE needs SVC_IMAGE_TRUSTED_KEYS, unless it is build');
    }
  }
  const missing = S3_VARIABLES.filter((key) => values[key] === undefined);
  if (missing.length > 0 && missing.length < S3_VARIABLES.length) {
    const names = missing.map((key) => VARIABLES[key].name).join(', ');
    conflicts.push(`the SVC_S3_ variables must be set together; missing or invalid: ${names}`);
  }
  return conflicts;
}

/** A directory of the XDG base directory specification, which says to ignore relative values. */
function userDirectory(
  environment: Environment,
  variable: string,
  fallback: string,
  name: string,
): string {
  const base = environment[variable];
  const home = environment.HOME ?? homedir();
  return join(base !== undefined && isAbsolute(base) ? base : join(home, fallback), name);
}
