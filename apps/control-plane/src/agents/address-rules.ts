/** Where requests on behalf of a customer may go. */
export interface AddressRules {
  /** Why this URL may not be used, as the rest of a sentence about it; undefined when it may. */
  problemOf(url: string): Promise<string | undefined>;
}
