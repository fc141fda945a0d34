import { freePorts } from '@svc/service-kit/testing';

export interface EnvironmentOptions {
  /** Variables of the service; they take precedence over the driver's own. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Listen on all addresses of the machine instead of localhost only. */
  readonly listenEverywhere?: boolean | undefined;
}

/** The environment of a private service: a data directory and free ports of its own, one idle VM in the pool. */
export async function serviceEnvironment(
  dataDir: string,
  { env = {}, listenEverywhere = false }: EnvironmentOptions = {},
): Promise<NodeJS.ProcessEnv> {
  const [controlPlane, runtime] = await freePorts(2);
  return {
    ...callersEnvironment(),
    SVC_DATA_DIR: dataDir,
    SVC_LISTEN: `${listenEverywhere ? '0.0.0.0' : 'localhost'}:${controlPlane}`,
    SVC_RUNTIME_LISTEN: `localhost:${runtime}`,
    SVC_POOL: 'standard=1',
    ...env,
  };
}

/**
 * The caller's environment without settings that would change the service. The image directory stays,
 * because building an image takes minutes.
 */
export function callersEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) =>
        name === 'SVC_IMAGE_DIR' || !/^(SVC_|VITEST|NODE_OPTIONS$|NODE_ENV$|TEST$)/.test(name),
    ),
  );
}
