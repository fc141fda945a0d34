/** The outer network: a machine that runs the service, and everything else there is. */
export const OUTER = {
  /** The machine's own address towards the world. */
  machine: '93.184.215.10',
  machine6: '2a02:2f0::10',
  /** The world's address on that link. */
  world: '93.184.215.1',
  world6: '2a02:2f0::1',
  /** An ordinary public address of the world. */
  public: '93.184.216.34',
  public6: '2a02:2f1::34',
  /** TCP port that the world answers on every address. */
  tcpPort: 80,
  /** UDP port that the world echoes on every address. */
  udpPort: 4242,
  /** TCP port that the machine answers on every address of its own. */
  machinePort: 8080,
} as const;
