/** The configuration of the service: the environment, read once at start. */

import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import type { ListenAddress } from './kinds.ts';
import { type Environment, readTable, type ValuesOf } from './read.ts';
import { ALL_VARIABLES, LIMIT_VARIABLES, VARIABLES } from './variables.ts';

const LAST_PORT = 65_535;

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
 * Reads and checks every variable.
 * @throws ConfigError naming every problem at once
 */
export function loadConfig(environment: Environment = process.env): Config {
  const problems: string[] = [];
  const values = readTable(VARIABLES, environment, problems);
  const limits = readTable(LIMIT_VARIABLES, environment, problems);
  problems.push(...conflictsOf(values));
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

/** Variables with the service's prefix that it does not know: probably misspelt. */
export function unknownVariables(
  environment: Environment,
  alsoKnown: readonly string[] = [],
): string[] {
  const known = new Set([...ALL_VARIABLES.map((variable) => variable.name), ...alsoKnown]);
  return Object.keys(environment).filter((name) => name.startsWith('SVC_') && !known.has(name));
}

/** The public URL of a listener: the configured one, or `localhost` with the bound port. */
export function publicUrl(
  configured: string | undefined,
  secureScheme: 'https' | 'wss',
  config: Pick<Config, 'tls'>,
  port: number,
): string {
  if (configured !== undefined) return configured;
  const scheme = config.tls ? secureScheme : secureScheme.slice(0, -1);
  return `${scheme}://localhost:${port}`;
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
  const together = (names: string[], present: boolean[]): void => {
    if (present.includes(true) && present.includes(false)) {
      conflicts.push(`${names.join(' and ')} must be set together`);
    }
  };
  together(
    ['SVC_TLS_CERT_FILE', 'SVC_TLS_KEY_FILE'],
    [values.tlsCertFile !== undefined, values.tlsKeyFile !== undefined],
  );
  together(
    ['SVC_S3_BUCKET', 'SVC_S3_ACCESS_KEY_ID', 'SVC_S3_SECRET_ACCESS_KEY'],
    [
      values.s3Bucket !== undefined,
      values.s3AccessKeyId !== undefined,
      values.s3SecretAccessKey !== undefined,
    ],
  );
  together(
    ['SVC_STRIPE_SECRET_KEY', 'SVC_STRIPE_WEBHOOK_SECRET'],
    [values.stripeSecretKey !== undefined, values.stripeWebhookSecret !== undefined],
  );
  if (values.tls === false && values.tlsCertFile !== undefined) {
    conflicts.push('SVC_TLS=off and SVC_TLS_CERT_FILE contradict each other');
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
