export {
  type CertificatePair,
  type CertificateRequest,
  createCa,
  createSelfSigned,
  issueCertificate,
} from './certificate.ts';
export { ensureLocalTls, type LocalTls, type LocalTlsOptions, localNames } from './local-ca.ts';
export { pinCertificate } from './pinned-certificate.ts';
export { ServerCertificate } from './server-certificate.ts';
