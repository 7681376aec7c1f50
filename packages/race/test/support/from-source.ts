/** Lets processes of a test import our packages from their sources, whether they are built or not. */
export const fromSource: string = new URL(
  '../../../holdfast/test/support/from-source.ts',
  import.meta.url,
).href
