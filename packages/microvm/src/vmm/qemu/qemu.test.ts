import { describeVmm } from '../vmm-contract.ts';

describeVmm('QEMU');
