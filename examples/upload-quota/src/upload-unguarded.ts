import { prisma } from './database.ts'
import { capBytes, type NewImage, QuotaExceeded } from './quota.ts'

// #region upload
export async function uploadImage({ id, userId, byteSize }: NewImage): Promise<void> {
  await prisma.$transaction(async (tx) => {
    const { _sum } = await tx.userImage.aggregate({ where: { userId }, _sum: { byteSize: true } })
    const used = _sum.byteSize ?? 0
    if (used + byteSize > capBytes) throw new QuotaExceeded(used)
    await tx.userImage.create({ data: { id, userId, byteSize } })
  })
}
// #endregion
