import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { ConfigError, listenNames, loadConfig, publicUrl } from './config.ts';
import { configurationPage } from './document.ts';

const HOME = { HOME: '/home/ada' };
const KEY = 'ed25519:11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo';

function problemsOf(environment: Record<string, string>): readonly string[] {
  try {
    loadConfig({ ...HOME, ...environment });
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

describe('defaults', () => {
  it('are sufficient for a complete configuration', () => {
    const config = loadConfig(HOME);
    expect(config).toMatchObject({
      dataDir: '/home/ada/.local/share/svc',
      imageDir: '/home/ada/.cache/svc/images',
      listen: { host: 'localhost', port: 8443 },
      runtimeListen: { host: 'localhost', port: 8444 },
      tls: true,
      templates: ['standard'],
      pool: { standard: 2 },
      egressAllowHosts: [],
      limits: { otpPerEmailPerHour: 3, otpPerIpPerHour: 20, sandboxesPerTenant: 100 },
    });
    expect(config.databaseUrl).toBeUndefined();
    expect(config.baseUrl).toBeUndefined();
  });

  it('follow the XDG directories, unless they are relative', () => {
    expect(loadConfig({ ...HOME, XDG_DATA_HOME: '/data' }).dataDir).toBe('/data/svc');
    expect(loadConfig({ ...HOME, XDG_DATA_HOME: 'data' }).dataDir).toBe(
      '/home/ada/.local/share/svc',
    );
    expect(loadConfig({ ...HOME, XDG_CACHE_HOME: '/cache' }).imageDir).toBe('/cache/svc/images');
  });

  it('give the runtime host the port after that of the control plane', () => {
    const portFor = (listen: string) => loadConfig({ ...HOME, SVC_LISTEN: listen }).runtimeListen;
    expect(portFor('[::]:9443')).toEqual({ host: '::', port: 9444 });
    expect(portFor('localhost:0')).toEqual({ host: 'localhost', port: 0 });
    expect(portFor('localhost:65535').port).toBe(65_534);
  });

  it('replace empty values', () => {
    expect(loadConfig({ ...HOME, SVC_LISTEN: '', SVC_POOL: '' }).pool).toEqual({ standard: 2 });
  });
});

describe('values', () => {
  it('name a control plane that is encrypted or on this machine', () => {
    const read = (SVC_CONTROL_PLANE_URL: string) =>
      loadConfig({ ...HOME, SVC_CONTROL_PLANE_URL }).controlPlaneUrl;
    for (const url of ['https://svc.example.com', 'http://localhost:1', 'http://127.0.0.1:1'])
      expect(read(url)).toBe(url);
    expect(read('http://[::1]:1')).toBe('http://[::1]:1');
    for (const host of ['svc.example.com', '10.0.0.7', 'localhost.example.com', '127.0.0.1.nip.io'])
      expect(problemsOf({ SVC_CONTROL_PLANE_URL: `http://${host}` })).toEqual([
        expect.stringContaining('SVC_CONTROL_PLANE_URL'),
      ]);
  });

  it('are converted', () => {
    const config = loadConfig({
      ...HOME,
      SVC_LISTEN: '[::1]:0',
      SVC_BASE_URL: 'https://svc.example.com/',
      SVC_POOL: 'standard=3, browser=0',
      SVC_TEMPLATES: 'standard,cua',
      SVC_EGRESS_ALLOW_HOSTS: 'Models.test:9000,[::1],10.0.0.1',
      SVC_TRUST_PROXY: '10.0.0.0/8',
      SVC_PROXY_PROTOCOL: '10.0.0.5, 2001:db8::/64',
      SVC_OTLP_ENDPOINT: 'https://otlp.example.com/tenant/',
      SVC_OTLP_HEADERS: 'Authorization=Basic pw==, x-scope=a',
      SVC_TRACE_RATIO: '0.25',
      SVC_IMAGE_SOURCE: 'store',
      SVC_IMAGE_TRUSTED_KEYS: `${KEY}, ${KEY}`,
      SVC_IMAGE_NOT_BEFORE: '2026-11-24T12:00:00Z',
      SVC_LIMIT_UPLOAD_BYTES: '1024',
      SVC_MASTER_KEY: '00'.repeat(32),
      SVC_DATABASE_URL: 'postgres://ada:pw@db/svc',
    });
    expect(config).toMatchObject({
      listen: { host: '::1', port: 0 },
      baseUrl: 'https://svc.example.com',
      pool: { standard: 3, browser: 0 },
      templates: ['standard', 'cua'],
      egressAllowHosts: [
        { host: 'models.test', port: 9000 },
        { host: '::1', port: undefined },
        { host: '10.0.0.1', port: undefined },
      ],
      trustProxy: ['10.0.0.0/8'],
      proxyProtocol: ['10.0.0.5', '2001:db8::/64'],
      otlpEndpoint: 'https://otlp.example.com/tenant',
      traceRatio: 0.25,
      imageTrustedKeys: [KEY, KEY],
      imageNotBefore: new Date('2026-11-24T12:00:00Z'),
      limits: { uploadBytes: 1024 },
    });
    expect(Buffer.from(config.masterKey?.reveal() ?? '', 'base64')).toEqual(Buffer.alloc(32));
    expect(config.otlpHeaders.authorization?.reveal()).toBe('Basic pw==');
    expect(config.otlpHeaders['x-scope']?.reveal()).toBe('a');
    expect(config.databaseUrl?.reveal()).toBe('postgres://ada:pw@db/svc');
    expect(JSON.stringify(config)).not.toContain('pw');
  });

  it.each([
    ['SVC_LISTEN', '8443'],
    ['SVC_LISTEN', 'localhost:70000'],
    ['SVC_LISTEN', '[nope]:1'],
    ['SVC_TRUST_PROXY', 'proxy.example.com'],
    ['SVC_TRUST_PROXY', '10.0.0.0/33'],
    ['SVC_TRUST_PROXY', '10.0.0/8'],
    ['SVC_PROXY_PROTOCOL', '2001:db8::/129'],
    ['SVC_PROXY_PROTOCOL', '10.0.0.1:8443'],
    ['SVC_BASE_URL', 'ftp://x'],
    ['SVC_BASE_URL', 'https://user:pw@x'],
    ['SVC_BASE_URL', 'https://x/path'],
    ['SVC_RUNTIME_URL', 'https://x'],
    ['SVC_POOL', 'standard'],
    ['SVC_POOL', 'standard=-1'],
    ['SVC_POOL', 'standard=1,standard=2'],
    ['SVC_POOL', 'nope=1'],
    ['SVC_TEMPLATES', 'standard,standard'],
    ['SVC_TEMPLATES', 'windows'],
    ['SVC_EGRESS_ALLOW_HOSTS', 'a b'],
    ['SVC_EGRESS_ALLOW_HOSTS', 'host:0'],
    ['SVC_TLS', 'maybe'],
    ['SVC_ACCESS_LOG', 'yes'],
    ['SVC_LOG_LEVEL', 'loud'],
    ['SVC_OTLP_ENDPOINT', 'otlp.example.com:4318'],
    ['SVC_OTLP_ENDPOINT', 'https://user:pw@otlp.example.com'],
    ['SVC_OTLP_ENDPOINT', 'https://otlp.example.com/?key=1'],
    ['SVC_OTLP_HEADERS', 'authorization'],
    ['SVC_OTLP_HEADERS', 'a b=c'],
    ['SVC_TRACE_RATIO', '1.5'],
    ['SVC_TRACE_RATIO', '10%'],
    ['SVC_IMAGE_SOURCE', 'internet'],
    ['SVC_IMAGE_TRUSTED_KEYS', KEY.slice(0, -1)],
    ['SVC_IMAGE_TRUSTED_KEYS', KEY.replace('ed25519', 'rsa')],
    ['SVC_IMAGE_NOT_BEFORE', '2026-11-24'],
    ['SVC_IMAGE_NOT_BEFORE', '2026-13-24T12:00:00Z'],
    ['SVC_LIMIT_SANDBOXES_PER_TENANT', '0'],
    ['SVC_LIMIT_SANDBOXES_PER_TENANT', '1.5'],
    ['SVC_MASTER_KEY', 'short'],
    ['SVC_CLUSTER_SECRET', 'short'],
    ['SVC_DATABASE_URL', 'mysql://db'],
  ])('%s=%s is refused', (name, value) => {
    expect(problemsOf({ [name]: value })).toEqual([expect.stringContaining(`${name} must be `)]);
  });

  it('that are invalid are all reported together, without secrets', () => {
    const problems = problemsOf({
      SVC_LISTEN: 'nowhere',
      SVC_CLUSTER_SECRET: 'canary',
      SVC_OTLP_HEADERS: 'canary',
      SVC_LIMIT_OTP_PER_IP_PER_HOUR: 'many',
      SVC_TLS_CERT_FILE: '/cert.pem',
    });
    expect(problems).toHaveLength(5);
    expect(problems.join()).not.toContain('canary');
    expect(problems.join()).toContain(
      'SVC_TLS_CERT_FILE and SVC_TLS_KEY_FILE must be set together',
    );
  });

  it('that depend on each other must be set together', () => {
    expect(problemsOf({ SVC_TLS_KEY_FILE: '/k' })).toHaveLength(1);
    expect(
      problemsOf({ SVC_TLS: 'off', SVC_TLS_CERT_FILE: '/c', SVC_TLS_KEY_FILE: '/k' }),
    ).toHaveLength(1);
  });

  it('name the keys whose images are taken from the store', () => {
    for (const source of ['store', 'store-or-build']) {
      expect(problemsOf({ SVC_IMAGE_SOURCE: source })).toEqual([
        expect.stringContaining('SVC_IMAGE_TRUSTED_KEYS'),
      ]);
    }
    expect(problemsOf({ SVC_IMAGE_SOURCE: 'build' })).toEqual([]);
  });

  it('that are secrets are set themselves or as a file', () => {
    const file = { SVC_CLUSTER_SECRET_FILE: '/c', SVC_MASTER_KEY_FILE: '/m' };
    expect(problemsOf(file)).toEqual([]);
    const themselves = { SVC_CLUSTER_SECRET: 's'.repeat(32), SVC_MASTER_KEY: '0'.repeat(64) };
    expect(problemsOf({ ...file, ...themselves })).toEqual([
      'SVC_CLUSTER_SECRET and SVC_CLUSTER_SECRET_FILE exclude each other',
      'SVC_MASTER_KEY and SVC_MASTER_KEY_FILE exclude each other',
    ]);
  });

  it('of the S3 server must be set together, and are reported together', () => {
    const s3 = {
      SVC_S3_ENDPOINT: 'https://s3.example.com',
      SVC_S3_REGION: 'us-east-1',
      SVC_S3_BUCKET: 'svc',
      SVC_S3_ACCESS_KEY_ID: 'canary-id',
      SVC_S3_SECRET_ACCESS_KEY: 'canary',
    };
    expect(problemsOf(s3)).toEqual([]);
    for (const name of Object.keys(s3)) {
      expect(problemsOf({ ...s3, [name]: '' })).toEqual([
        `the SVC_S3_ variables must be set together; missing or invalid: ${name}`,
      ]);
    }
    expect(problemsOf({ ...s3, SVC_S3_REGION: '', SVC_S3_BUCKET: 'a b' })).toEqual([
      expect.stringContaining('SVC_S3_BUCKET must be '),
      expect.stringContaining('SVC_S3_REGION, SVC_S3_BUCKET'),
    ]);
    expect(JSON.stringify(loadConfig({ ...HOME, ...s3 }))).not.toContain('canary"');
  });
});

it('derives public URLs from the bound port', () => {
  const at = (host: string) => ({ host, port: 9000 });
  expect(publicUrl(undefined, 'wss', { tls: false }, at('localhost'))).toBe('ws://localhost:9000');
  expect(publicUrl('https://svc.test', 'https', { tls: false }, at('::'))).toBe('https://svc.test');
  for (const [host, inUrl] of [
    ['127.0.0.1', 'localhost'],
    ['0.0.0.0', 'localhost'],
    ['::', 'localhost'],
    ['10.0.0.5', '10.0.0.5'],
    ['fd00::5', '[fd00::5]'],
    ['svc.test', 'svc.test'],
  ] as const) {
    expect(publicUrl(undefined, 'https', { tls: true }, at(host))).toBe(`https://${inUrl}:9000`);
  }
});

it('names the hosts that a certificate needs besides those of every machine', () => {
  const names = (environment: Record<string, string>) =>
    listenNames(loadConfig({ ...HOME, ...environment }));
  expect(names({})).toEqual([]);
  expect(names({ SVC_LISTEN: '0.0.0.0:8443' })).toEqual([]);
  expect(names({ SVC_LISTEN: '10.0.0.5:1', SVC_INTERNAL_LISTEN: '[fd00::5]:2' })).toEqual([
    '10.0.0.5',
    'fd00::5',
    '10.0.0.5',
  ]);
});

it('matches its documentation', async () => {
  const page = new URL('../../../docs/configuration.md', import.meta.url);
  expect(await readFile(page, 'utf8')).toBe(configurationPage());
});
