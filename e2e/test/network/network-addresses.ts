/** Addresses of the simulated network: a host that runs the service, and the internet. */
export const NETWORK = {
  /** The host's address on its link to the internet. */
  host: '93.184.215.10',
  host6: '2a02:2f0::10',
  /** The internet's address on that link. */
  gateway: '93.184.215.1',
  gateway6: '2a02:2f0::1',
  /** An ordinary public address. */
  public: '93.184.216.34',
  public6: '2a02:2f1::34',
  /** TCP port that is open on every address of the internet. */
  tcpPort: 80,
  /** TCP port of the internet's package repository. */
  packagesPort: 8081,
  /** UDP port that echoes on every address of the internet. */
  udpPort: 4242,
  /** TCP port that is open on every address of the host. */
  hostPort: 8080,
} as const;
