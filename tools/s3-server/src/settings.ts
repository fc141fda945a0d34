/** What a client of the server needs. */
export interface S3ServerSettings {
  readonly endpoint: string;
  readonly region: string;
  /** An empty bucket. */
  readonly bucket: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}
