import { testVmmContract } from '../../../test/vmm-contract.ts';

testVmmContract('QEMU');
