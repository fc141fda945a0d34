import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import * as daemonSet from 'kubernetes-models/_schemas/IoK8sApiAppsV1DaemonSet';
import * as deployment from 'kubernetes-models/_schemas/IoK8sApiAppsV1Deployment';
import * as configMap from 'kubernetes-models/_schemas/IoK8sApiCoreV1ConfigMap';
import * as service from 'kubernetes-models/_schemas/IoK8sApiCoreV1Service';
import * as disruptionBudget from 'kubernetes-models/_schemas/IoK8sApiPolicyV1PodDisruptionBudget';
import { describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { loadServiceConfig } from '../packages/config/src/index.ts';
import { mergeValues, renderChart, type Values } from './helm/render-chart.ts';
import { CHART, readFacts } from './release/facts.ts';

/** The validators of Kubernetes' own schemas, by version and kind. */
const SCHEMAS: Readonly<Record<string, Schema>> = {
  'v1 ConfigMap': configMap,
  'v1 Service': service,
  'apps/v1 DaemonSet': daemonSet,
  'apps/v1 Deployment': deployment,
  'policy/v1 PodDisruptionBudget': disruptionBudget,
};

/** A generated validator. After a failure, it has the errors of the call. */
interface Schema {
  readonly validate: ((data: unknown) => boolean) & { readonly errors?: readonly object[] | null };
}
interface Variable {
  readonly name: string;
  readonly value?: string;
}
interface PodSpec {
  readonly enableServiceLinks?: boolean;
  readonly hostPID?: boolean;
  readonly hostNetwork?: boolean;
  readonly terminationGracePeriodSeconds: number;
  readonly containers: readonly {
    readonly image: string;
    readonly env: readonly Variable[];
    readonly volumeMounts: readonly { readonly name: string }[];
  }[];
  readonly volumes: readonly { readonly name: string }[];
}
interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly data?: Readonly<Record<string, string>>;
  readonly spec?: {
    readonly selector?: { readonly matchLabels?: object };
    readonly template?: { readonly metadata: { readonly labels: object }; readonly spec: PodSpec };
  };
}

const schema: object = JSON.parse(await readFile(join(CHART, 'values.schema.json'), 'utf8'));
const defaults: Values = parse(await readFile(join(CHART, 'values.yaml'), 'utf8'));
/** The values that the documentation has as an example. */
const example: Values = parse(
  /```yaml\n(.*?)```/s.exec(await readFile('docs/kubernetes.md', 'utf8'))?.[1] ?? '',
);
const release = { name: 'svc', namespace: 'svc', values: mergeValues(defaults, example) };
const manifests = await manifestsOf(release.values);
const pods = manifests.flatMap((manifest) => {
  const spec = manifest.spec?.template?.spec;
  return spec === undefined ? [] : [{ name: manifest.metadata.name, spec }];
});

async function manifestsOf(values: Values): Promise<readonly Manifest[]> {
  const { 'NOTES.txt': notes, ...files } = Object.fromEntries(
    await renderChart({ ...release, values }),
  );
  expect(notes).toContain(values.baseUrl);
  return Object.values(files).flatMap((file) =>
    parseAllDocuments(file).map((document) => {
      expect(document.errors).toEqual([]);
      return document.toJS();
    }),
  );
}

/** An object that notes which of its fields are read, at any depth. */
function watched(value: unknown, path: string, read: Set<string>): unknown {
  if (typeof value !== 'object' || value === null) return value;
  return new Proxy(value, {
    get: (target, key) => {
      const inner: unknown = Reflect.get(target, key);
      if (typeof key === 'symbol' || Array.isArray(target)) {
        return watched(inner, `${path}[]`, read);
      }
      read.add(`${path}.${key}`);
      return watched(inner, `${path}.${key}`, read);
    },
  });
}

function pathsOf(value: unknown, path: string): string[] {
  if (typeof value !== 'object' || value === null) return [];
  if (Array.isArray(value)) return value.flatMap((item) => pathsOf(item, `${path}[]`));
  return Object.entries(value).flatMap(([key, inner]) => [
    `${path}.${key}`,
    ...pathsOf(inner, `${path}.${key}`),
  ]);
}

/** What is wrong with a manifest: the errors of its schema, and fields that this does not have, which no validator reads. */
function faultsOf(manifest: Manifest): readonly unknown[] {
  const schema = SCHEMAS[`${manifest.apiVersion} ${manifest.kind}`];
  if (schema === undefined) return [`there is no schema for a ${manifest.kind}`];
  const read = new Set<string>();
  if (!schema.validate(watched(manifest, '', read))) return schema.validate.errors ?? [];
  return pathsOf(manifest, '').filter((path) => !read.has(path));
}

test.each(manifests)('$kind $metadata.name follows the schema of Kubernetes', (manifest) => {
  expect(faultsOf(manifest)).toEqual([]);
});

test('an unknown field and a wrong type are noticed', () => {
  const manifest = (spec: object) => ({
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: 'x' },
    spec: {
      selector: { matchLabels: { app: 'x' } },
      template: { metadata: { labels: { app: 'x' } }, spec },
    },
  });
  const faults = (spec: object) => faultsOf(manifest(spec) as never);
  expect(faults({ containers: [{ name: 'x' }], hostPID: true })).toEqual([]);
  expect(faults({ containers: [{ name: 'x' }], hostPid: true })).toEqual([
    '.spec.template.spec.hostPid',
  ]);
  expect(faults({ containers: [{ name: 7 }] })).toEqual([
    expect.objectContaining({ instancePath: '/spec/template/spec/containers/0/name' }),
  ]);
});

describe('the values', () => {
  const validate = new Ajv({ strict: true, allowUnionTypes: true }).compile(schema);

  test('of the documentation fit the schema, and those that it does not set are defaults', () => {
    expect(validate(release.values)).toBe(true);
    expect(validate(defaults)).toBe(false);
  });

  test.each([
    ['a name that does not exist', { replicas: 3 }],
    ['a public address without TLS', { baseUrl: 'http://svc.example.com' }],
    ['a setting that cannot be one of svc', { settings: { LOG_LEVEL: 'debug' } }],
    ['no replicas', { controlPlane: { replicas: 0 } }],
    ['workers on every node', { worker: { nodeSelector: null } }],
  ])('are refused with %s', (_, values) => {
    expect(validate(mergeValues(release.values, values))).toBe(false);
  });

  test('reach the manifests', async () => {
    const values = mergeValues(release.values, {
      imagePullSecrets: ['registry', 'mirror'],
      settings: { SVC_LOG_LEVEL: 'debug', SVC_DRAIN_SECONDS: 30 },
      secrets: { tls: 'certificate' },
      controlPlane: {
        replicas: 5,
        settings: { SVC_LIMIT_OTP_PER_IP_PER_HOUR: '7' },
        resources: {},
      },
      runtime: { service: { type: 'LoadBalancer', annotations: { 'example.com/kind': 'tcp' } } },
      worker: { tolerations: [{ key: 'svc.dev/worker', operator: 'Exists' }] },
    });
    expect(validate(values)).toBe(true);
    const changed = await manifestsOf(values);
    expect(changed.flatMap(faultsOf)).toEqual([]);
    const named = (kind: string, name: string) =>
      changed.find((one) => one.kind === kind && one.metadata.name === name);
    expect(named('ConfigMap', 'svc')?.data).toMatchObject({
      SVC_LOG_LEVEL: 'debug',
      SVC_DRAIN_SECONDS: '30',
    });
    const template = (manifest: Manifest | undefined) => manifest?.spec?.template;
    const controlPlane = named('Deployment', 'svc-control-plane');
    expect(controlPlane?.spec).toMatchObject({ replicas: 5 });
    expect(template(controlPlane)?.spec).toMatchObject({
      imagePullSecrets: [{ name: 'registry' }, { name: 'mirror' }],
      containers: [{ resources: {} }],
      volumes: expect.arrayContaining([{ name: 'tls', secret: { secretName: 'certificate' } }]),
    });
    expect(template(controlPlane)?.spec.containers[0]?.env).toContainEqual({
      name: 'SVC_LIMIT_OTP_PER_IP_PER_HOUR',
      value: '7',
    });
    expect(named('Service', 'svc-runtime')).toMatchObject({
      metadata: { annotations: { 'example.com/kind': 'tcp' } },
      spec: { type: 'LoadBalancer' },
    });
    expect(template(named('DaemonSet', 'svc-worker'))?.spec).toMatchObject({
      tolerations: [{ key: 'svc.dev/worker', operator: 'Exists' }],
    });
    // Pods that share changed settings are replaced.
    const digest = (all: readonly Manifest[]) =>
      template(all.find(({ kind }) => kind === 'Deployment'))?.metadata;
    expect(digest(changed)).not.toEqual(digest(manifests));
  });
});

test('the chart has the version of its release', async () => {
  const { version } = await readFacts();
  expect(parse(await readFile(join(CHART, 'Chart.yaml'), 'utf8'))).toMatchObject({
    version,
    appVersion: version,
  });
});

test('selectors select the pods of their workload, and mounts name a volume', () => {
  for (const { spec } of manifests.filter((manifest) => manifest.spec?.template !== undefined)) {
    expect(spec?.selector?.matchLabels).toEqual(spec?.template?.metadata.labels);
  }
  for (const { spec } of pods) {
    const volumes = spec.volumes.map(({ name }) => name);
    const mounts = spec.containers.flatMap(({ volumeMounts }) => volumeMounts);
    expect(mounts.map(({ name }) => name).sort()).toEqual(volumes.sort());
  }
});

test.each(pods)('$name has settings that svc accepts, and no others', ({ spec }) => {
  const [container] = spec.containers;
  const shared = manifests.find(({ kind }) => kind === 'ConfigMap')?.data;
  const secrets: Readonly<Record<string, string>> = {
    SVC_DATABASE_URL: 'postgres://svc@db.example.com/svc',
  };
  const own = Object.fromEntries(
    (container?.env ?? []).map(({ name, value }) => [name, value ?? secrets[name] ?? 'x']),
  );
  const s3 = { SVC_S3_ACCESS_KEY_ID: 'x', SVC_S3_SECRET_ACCESS_KEY: 'x' };
  const environment: Record<string, string> = { ...shared, ...s3, ...own };
  if (environment.SVC_WORKER_LISTEN !== undefined) {
    expect(environment.SVC_WORKER_LISTEN).toContain('$(NODE_IP)');
    environment.SVC_WORKER_LISTEN = environment.SVC_WORKER_LISTEN.replace('$(NODE_IP)', '10.0.0.7');
  }
  expect(() => loadServiceConfig(environment)).not.toThrow();
  // Otherwise Kubernetes adds SVC_… variables of its own, with which nothing starts.
  expect(spec.enableServiceLinks).toBe(false);
});

test('the pods have longer to stop than a drain takes', () => {
  const { drainSeconds } = loadServiceConfig({});
  const grace = (name: string) =>
    pods.find((pod) => pod.name === name)?.spec.terminationGracePeriodSeconds;
  expect(grace('svc-control-plane')).toBeGreaterThanOrEqual(5 + drainSeconds + 60);
  expect(grace('svc-worker')).toBeGreaterThanOrEqual(drainSeconds + 100);
  expect(grace('svc-runtime')).toBeGreaterThanOrEqual(30);
});
