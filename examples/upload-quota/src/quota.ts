/** Ten megabytes a user. */
export const capBytes = 10_000_000

/** The upload does not fit. An answer to the client, not a failure of the service. */
export class QuotaExceeded extends Error {
  readonly usedBytes: number

  constructor(usedBytes: number) {
    super('the upload does not fit into the quota')
    this.usedBytes = usedBytes
  }
}

/** An image to be saved. Its id is chosen before the transaction, so that it can be looked for. */
export interface NewImage {
  readonly id: string
  readonly userId: string
  readonly byteSize: number
}
