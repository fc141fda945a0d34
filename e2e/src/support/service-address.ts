/** Where a running service is, as plain data that can be handed from process to process. */
export interface ServiceAddress {
  readonly baseUrl: string;
  readonly caFile: string;
  readonly dataDir: string;
}
