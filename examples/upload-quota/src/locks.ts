import { type LockNamespace, lockNamespace } from 'holdfast'

/** Every lock of the service is declared here, so that no two flows share a name by accident. */
export const imageUpload: LockNamespace = lockNamespace(
  'image-upload',
  'Uploads of one user, one at a time: the sum that was checked is the sum that is written to',
)
